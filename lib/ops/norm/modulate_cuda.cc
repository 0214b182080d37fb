// The CUDA versions of the kernels of modulate_kernels.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/modulate.h"
#include "kernels/modulate_backward.h"
#include "kernels/modulate_fp8.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "ops/norm/modulate_fp8_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {
namespace {

static_assert(sizeof(RowRun) == sizeof(kernels::ModulateRun) &&
              offsetof(RowRun, row) == offsetof(kernels::ModulateRun, row));

/// What forward and backward both have.
template <class Call>
Call describe(const ModulateArgs& args) {
  Call call;
  call.width = static_cast<int>(args.width);
  call.type = kernel_type(args.type);
  call.centred = args.centred;
  call.stream = args.stream, call.moments = args.moments;
  call.branch = args.branch;
  call.gate = args.gate, call.gate_stride = args.gate_stride;
  call.modulation = args.modulation, call.modulation_stride = args.modulation_stride;
  return call;
}

kernels::ModulateBackward describe_backward(const ModulateBackwardArgs& args) {
  auto call = describe<kernels::ModulateBackward>(args.forward);
  call.dnormed = args.dnormed, call.dstream = args.dstream;
  call.dx = args.dx, call.dbranch = args.dbranch;
  call.runs = reinterpret_cast<const kernels::ModulateRun*>(args.runs);
  call.run_count = args.run_count;
  call.partial = args.partial;
  return call;
}

kernels::ModulateForward describe_forward(const ModulateArgs& args) {
  auto call = describe<kernels::ModulateForward>(args);
  call.tokens = args.tokens, call.rows = args.rows;
  call.epsilon = args.epsilon;
  call.x = args.x, call.extra = args.extra;
  if (args.stream == args.x) call.stream = nullptr;  // it is written already
  call.normed = args.normed;
  return call;
}

}  // namespace

void modulate_forward(const ModulateArgs& args) {
  check_gpu(kernels::modulate_forward(describe_forward(args), compute_stream()), "run modulate");
}

void modulate_fp8(const ModulateArgs& args, const Quantized& normed) {
  const Tensor maxima({args.tokens}, DType::i32, Device::cuda);
  const Tensor largest({kernels::kQuantizeParts}, DType::i32, Device::cuda);
  kernels::ModulateFp8 call;
  call.forward = describe_forward(args);
  call.values = normed.values.data<std::uint8_t>();
  call.scale = normed.scale.data<float>();
  call.maxima = maxima.data<std::uint32_t>();
  call.largest = largest.data<std::uint32_t>();
  check_fp8_gpu(kernels::modulate_fp8(call, compute_stream()), "run modulate to FP8");
}

void modulate_backward(const ModulateBackwardArgs& args) {
  check_gpu(kernels::modulate_backward(describe_backward(args), args.dextra, compute_stream()),
            "run modulate backward");
}

void modulate_reduce(const ModulateBackwardArgs& args, std::int64_t rows, float* sums) {
  check_gpu(kernels::modulate_reduce(describe_backward(args), rows, sums, compute_stream()),
            "add the sums of modulate");
}

}  // namespace vfm::ops::cuda
