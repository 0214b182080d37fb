// SPDX-License-Identifier: Apache-2.0

#include "kernels/positions.h"
#include "kernels/qk_norm_rope.h"
#include "kernels/text_rows.h"
#include "ops/position/positions.h"
#include "ops/position/position_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

namespace {

Tensor list_of(const std::vector<TokenGrid>& grids) {
  std::vector<std::int32_t> list;
  std::int32_t first = 0;
  for (const TokenGrid& g : grids) {
    list.insert(list.end(), {first, g.frames, g.height, g.width});
    first += g.frames * g.height * g.width;
  }
  return upload(list);
}

void describe_positions(const PositionArgs& args, const std::vector<TokenGrid>& grids,
                        const Tensor& list, kernels::Positions& call) {
  call.tokens = args.tokens;
  call.width = static_cast<int>(args.width);
  call.unit = args.unit;
  call.samples = static_cast<int>(grids.size());
  call.grids = list.data<std::int32_t>();
}

}  // namespace

void cuda::learned_positions_forward(const PositionArgs& args,
                                     const std::vector<TokenGrid>& grids) {
  const Tensor list = list_of(grids);
  kernels::PositionsForward call;
  describe_positions(args, grids, list, call);
  for (std::size_t i = 0; i < 3; ++i)
    call.tables[i] = args.tables[i];
  call.result = args.result;
  call.norms = args.norms;
  check_gpu(kernels::positions_forward(call, compute_stream()), "run positions");
}

void cuda::learned_positions_backward(const PositionArgs& args,
                                      const std::vector<TokenGrid>& grids) {
  const Tensor list = list_of(grids);
  const Tensor scratch({2 * args.tokens}, DType::f32, Device::cuda);
  kernels::PositionsBackward call;
  describe_positions(args, grids, list, call);
  call.result = args.result;
  call.norms = args.norms;
  call.dy = args.dy;
  call.scratch = scratch.data<float>();
  for (std::size_t i = 0; i < 3; ++i) {
    call.rows[i] = static_cast<int>(args.table_rows[i]);
    call.gradients[i] = args.gradients[i];
  }
  check_gpu(kernels::positions_backward(call, compute_stream()), "run positions backward");
}

void cuda::sinusoid(const Tensor& times, const Tensor& result) {
  check_gpu(
      kernels::sinusoid(times.data<float>(), times.elements(), static_cast<int>(result.size(1)),
                        result.data<float>(), compute_stream()),
      "run sinusoid");
}

namespace {

void describe_qk(const QkNormRopeArgs& args, kernels::QkNormRope& call) {
  call.tokens = args.tokens;
  call.query_heads = args.query_heads;
  call.key_heads = args.key_heads;
  call.value_heads = args.value_heads;
  call.head_dim = args.head_dim;
  call.type = kernel_type(args.type);
  call.epsilon = args.epsilon;
  call.query_weight = args.query_weight;
  call.key_weight = args.key_weight;
  call.cosines = args.cosines;
  call.sines = args.sines;
  call.pairs = args.pairs;
}

}  // namespace

void cuda::qk_norm_rope_forward(const QkNormRopeArgs& args) {
  kernels::QkNormRopeForward call;
  describe_qk(args, call);
  call.x = args.x;
  call.y = args.y;
  call.values = args.values;
  check_gpu(kernels::qk_norm_rope_forward(call, compute_stream()), "run qk_norm_rope");
}

void cuda::qk_norm_rope_gradients(const QkNormRopeArgs& args, const Tensor& query,
                                  const Tensor& key) {
  kernels::QkNormRopeBackward call;
  describe_qk(args, call);
  call.x = args.x;
  call.dy = args.dy;
  call.dx = args.y;
  if (query.defined()) call.query_dweight = query.data<float>();
  if (key.defined()) call.key_dweight = key.data<float>();
  const Tensor partial({kernels::qk_norm_rope_partials(call)}, DType::f32, Device::cuda);
  call.partial = partial.data<float>();
  check_gpu(kernels::qk_norm_rope_backward(call, compute_stream()), "run qk_norm_rope backward");
}

void cuda::turn_heads(const TurnHeadsArgs& args) {
  check_gpu(kernels::turn_heads(args.x, args.rows, args.width, args.heads, args.half, args.cosines,
                                args.sines, compute_stream()),
            "turn heads");
}

void cuda::turn_neighbours(const TurnHeadsArgs& args) {
  check_gpu(kernels::turn_neighbours(args.x, args.rows, args.width, args.heads, args.half,
                                     args.cosines, args.sines, compute_stream()),
            "turn neighbours");
}

}  // namespace vfm::ops
