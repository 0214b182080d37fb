// SPDX-License-Identifier: Apache-2.0
#include "ops/cudnn/cudnn_plan_cuda.h"

#include <cudnn.h>

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/cudnn/cudnn_descriptors_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

using namespace graph;
using namespace cudnn;

namespace {

cudnnDataType_t type_of(Type type) {
  switch (type) {
    case Type::f32:
      return CUDNN_DATA_FLOAT;
    case Type::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Type::f8e4m3:
      return CUDNN_DATA_FP8_E4M3;
    case Type::i32:
      return CUDNN_DATA_INT32;
    case Type::i64:
      return CUDNN_DATA_INT64;
    case Type::boolean:
      return CUDNN_DATA_BOOLEAN;
  }
  fail("cuDNN: no such type");
}

cudnnPointwiseMode_t mode_of(Op op) {
  static constexpr std::pair<Op, cudnnPointwiseMode_t> kModes[] = {
      {Op::add, CUDNN_POINTWISE_ADD},
      {Op::subtract, CUDNN_POINTWISE_SUB},
      {Op::multiply, CUDNN_POINTWISE_MUL},
      {Op::divide, CUDNN_POINTWISE_DIV},
      {Op::less, CUDNN_POINTWISE_CMP_LT},
      {Op::greater_equal, CUDNN_POINTWISE_CMP_GE},
      {Op::both, CUDNN_POINTWISE_LOGICAL_AND},
      {Op::exp, CUDNN_POINTWISE_EXP},
      {Op::log, CUDNN_POINTWISE_LOG},
      {Op::copy, CUDNN_POINTWISE_IDENTITY},
      {Op::select, CUDNN_POINTWISE_BINARY_SELECT},
      {Op::position, CUDNN_POINTWISE_GEN_INDEX},
  };
  for (const auto& [name, mode] : kModes)
    if (name == op) return mode;
  fail("cuDNN: not a pointwise operation");
}

cudnnHandle_t context() {
  static const cudnnHandle_t made = [] {
    cudnnHandle_t handle = nullptr;
    check(library().Create(&handle), "start");
    check(library().SetStream(handle, compute_stream()), "use our stream");
    return handle;
  }();
  return made;
}

// Turns a graph's tensors and operations into cuDNN's.
class Lowering {
 public:
  explicit Lowering(const Graph& graph) : graph_(graph) {
    for (const TensorOfGraph& tensor : graph.tensors())
      tensors_.push_back(lower(tensor));
    for (const Operation& operation : graph.operations())
      operations_.push_back(lower(operation));
  }
  std::vector<void*> operations() const {
    std::vector<void*> pointers;
    for (const Descriptor& operation : operations_)
      pointers.push_back(operation.get());
    return pointers;
  }

 private:
  const Descriptor& at(Edge edge) const { return tensors_[static_cast<std::size_t>(edge)]; }
  void link(const Descriptor& d, cudnnBackendAttributeName_t name, Edge edge) const {
    if (edge != none) set(d, name, at(edge));
  }

  Descriptor lower(const TensorOfGraph& tensor) const {
    const Descriptor d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(tensor.type));
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor.layout.dims.data());
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor.layout.strides.data());
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
    if (tensor.place == Place::inner) set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (tensor.place == Place::number) set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    link(d, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, tensor.ragged);
    finish(d, "describe a tensor");
    return d;
  }

  Descriptor lower(const Operation& o) const {
    if (o.op == Op::matmul) return matmul(o);
    if (o.op == Op::reshape) return reshape(o);
    if (o.op == Op::convolution || o.op == Op::convolution_back) return convolution(o);
    // Over dimensions that become one, or over heads that share a key head.
    if (o.op == Op::sum || o.op == Op::largest || o.op == Op::largest_magnitude)
      return reduction(o);
    return pointwise(o);
  }

  Descriptor matmul(const Operation& o) const {
    const Descriptor what = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(what, "describe a product");
    const Descriptor d = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, o.a);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, o.b);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, o.out);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, o.rows);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, o.columns);
    link(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, o.depth);
    finish(d, "add a product to a graph");
    return d;
  }

  Descriptor reshape(const Operation& o) const {
    const Descriptor d = create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    link(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, o.a);
    link(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, o.out);
    finish(d, "add a reshape to a graph");
    return d;
  }

  Descriptor convolution(const Operation& o) const {
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const std::array<std::int64_t, 2> dilations{1, 1};
    const Descriptor what = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(what, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(what, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(what, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
    const auto pair = [&](cudnnBackendAttributeName_t name, const auto& values) {
      set(what, name, CUDNN_TYPE_INT64, 2, values.data());
    };
    pair(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations);
    pair(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, o.window.strides);
    pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, o.window.before);
    pair(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, o.window.after);
    finish(what, "describe a convolution");
    const float one = 1, nothing = 0;
    const bool back = o.op == Op::convolution_back;
    const Descriptor d = create(back ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                                     : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(d,
        back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
             : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        what);
    set(d,
        back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
             : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_TYPE_FLOAT, 1, &one);
    set(d,
        back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA
             : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        CUDNN_TYPE_FLOAT, 1, &nothing);
    link(d,
         back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
              : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         o.a);
    link(d,
         back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W
              : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         o.b);
    link(d,
         back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX
              : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         o.out);
    finish(d, "add a convolution to a graph");
    return d;
  }

  Descriptor reduction(const Operation& o) const {
    const cudnnReduceTensorOp_t mode = o.op == Op::sum       ? CUDNN_REDUCE_TENSOR_ADD
                                       : o.op == Op::largest ? CUDNN_REDUCE_TENSOR_MAX
                                                             : CUDNN_REDUCE_TENSOR_AMAX;
    const Descriptor what = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    finish(what, "describe a reduction");
    const Descriptor d = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
    link(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, o.a);
    link(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, o.out);
    finish(d, "add a reduction to a graph");
    return d;
  }

  Descriptor pointwise(const Operation& o) const {
    // Positions and truth values are computed as what they are, all else in f32.
    const Type type = graph_.at(o.out).type;
    const bool discrete = type == Type::i32 || type == Type::boolean;
    const cudnnPointwiseMode_t mode = mode_of(o.op);
    const Descriptor what = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(what, CUDNN_ATTR_POINTWISE_MATH_PREC, discrete ? type_of(type) : CUDNN_DATA_FLOAT);
    if (o.op == Op::position) set(what, CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{o.axis});
    finish(what, "describe a pointwise operation");
    const Descriptor d = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    link(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, o.a);
    link(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, o.b);
    link(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, o.c);
    link(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, o.out);
    finish(d, "add a pointwise operation to a graph");
    return d;
  }

  const Graph& graph_;
  std::vector<Descriptor> tensors_, operations_;
};

// The engines, with their settings, that the heuristics propose; none if the mode does not apply.
std::vector<Descriptor> proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                  const Descriptor& device, std::string& why) {
  const Descriptor heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (device) set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  const cudnnStatus_t status = library().BackendFinalize(heuristics.get());
  if (status != CUDNN_STATUS_SUCCESS) {
    why = last_error(status);
    return {};
  }
  const auto results = [&](std::int64_t room, void* to) {
    std::int64_t count = 0;
    check(library().BackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &count, to),
          "propose engines");
    return count;
  };
  std::vector<Descriptor> engines;
  std::vector<void*> pointers;
  for (std::int64_t i = results(0, nullptr); i > 0; --i) {
    engines.push_back(create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    pointers.push_back(engines.back().get());
  }
  if (!engines.empty())
    engines.resize(static_cast<std::size_t>(
        results(static_cast<std::int64_t>(engines.size()), pointers.data())));
  return engines;
}

}  // namespace

CudnnGraph::CudnnGraph(const Graph& graph) : CudnnGraph(graph, nullptr) {}

// `context` is null for a graph that is not to run.
CudnnGraph::CudnnGraph(const Graph& graph, void* context)
    : whole_(create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
  const Lowering lowering(graph);
  const std::vector<void*> operations = lowering.operations();
  set(whole_, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
      static_cast<std::int64_t>(operations.size()), operations.data());
  if (context != nullptr)
    set(whole_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &context);
  finish(whole_, "take the graph");
}

CudnnPlan::CudnnPlan(const Graph& graph) : graph_(graph, context()) {
  choose({});
  for (const TensorOfGraph& tensor : graph.tensors())
    if (tensor.place == Place::number) numbers_.emplace_back(tensor.id, tensor.number);
}

CudnnPlan::CudnnPlan(const Graph& graph, std::string_view properties) : graph_(graph) {
  const Descriptor device = create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
      static_cast<std::int64_t>(properties.size()), properties.data());
  finish(device, "describe a GPU");
  choose(device);
}

// `device` is null for the GPU of this process.
void CudnnPlan::choose(const Descriptor& device) {
  std::string why = "its heuristics propose none";
  for (const cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& engine : proposals(graph_.whole_, mode, device, why))
      if (build(engine, device, why)) return;
  fail("cuDNN has no engine for this graph: {}", why);
}

bool CudnnPlan::build(const Descriptor& configuration, const Descriptor& device, std::string& why) {
  const Descriptor plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (device) {
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  } else {
    const cudnnHandle_t handle = context();
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  const cudnnStatus_t status = library().BackendFinalize(plan.get());
  if (status != CUDNN_STATUS_SUCCESS) {
    why = last_error(status);
    return false;
  }
  std::int64_t count = 0;
  check(library().BackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                      CUDNN_TYPE_INT64, 1, &count, &workspace_),
        "report its scratch");
  configuration_ = configuration;
  plan_ = plan;
  return true;
}

void CudnnPlan::run(const Memory& memory, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : memory)
    ids.push_back(id), pointers.push_back(pointer);
  for (const auto& [id, value] : numbers_)
    ids.push_back(id), pointers.push_back(const_cast<float*>(&value));
  const Descriptor pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(ids.size());
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  finish(pack, "take the pointers");
  check(library().BackendExecute(context(), plan_.get(), pack.get()), "run a plan");
}

}  // namespace vfm::ops
