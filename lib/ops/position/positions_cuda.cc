// SPDX-License-Identifier: Apache-2.0
#include "ops/position/positions_cuda.h"

#include "kernels/positions.h"
#include "tensor/device.h"

namespace vfm::ops {

Tensor learned_positions_cuda(Tape& tape, const std::array<Tensor, 3>& tables,
                              const std::vector<TokenGrid>& grids, std::int64_t tokens, bool unit) {
  std::vector<std::int32_t> list;
  std::int32_t first = 0;
  for (const TokenGrid& g : grids) {
    list.insert(list.end(), {first, g.frames, g.height, g.width});
    first += g.frames * g.height * g.width;
  }
  const auto length = static_cast<std::int64_t>(list.size());
  const Tensor grid = upload(list);
  const std::int64_t width = tables[0].size(1);
  const Tensor result({tokens, width}, DType::f32, Device::cuda);
  const Tensor norms({tokens}, DType::f32, Device::cuda);
  const auto describe = [=](kernels::Positions& call) {
    call.tokens = tokens;
    call.width = static_cast<int>(width);
    call.unit = unit;
    call.samples = static_cast<int>(length / 4);
    call.grids = grid.data<std::int32_t>();
  };
  kernels::PositionsForward call;
  describe(call);
  for (std::size_t i = 0; i < 3; ++i)
    call.tables[i] = tables[i].data<float>();
  call.result = result.data<float>();
  call.norms = norms.data<float>();
  check_gpu(kernels::positions_forward(call, compute_stream()), "run positions");
  tape.record(result, {tables[0], tables[1], tables[2]}, [=](Tape& t) {
    const Tensor dy = t.take(result).to(DType::f32);
    const Tensor scratch({2 * tokens}, DType::f32, Device::cuda);
    std::array<Tensor, 3> gradients;
    kernels::PositionsBackward back;
    describe(back);
    back.result = result.data<float>();
    back.norms = norms.data<float>();
    back.dy = dy.data<float>();
    back.scratch = scratch.data<float>();
    for (std::size_t i = 0; i < 3; ++i) {
      back.rows[i] = static_cast<int>(tables[i].size(0));
      if (!t.wants_grad(tables[i])) continue;
      gradients[i] = Tensor(tables[i].shape(), DType::f32, Device::cuda);
      back.gradients[i] = gradients[i].data<float>();
    }
    check_gpu(kernels::positions_backward(back, compute_stream()), "run positions backward");
    for (std::size_t i = 0; i < 3; ++i)
      if (gradients[i].defined()) t.accumulate(tables[i], gradients[i]);
  });
  return result;
}

Tensor sinusoid_cuda(const Tensor& times, int width) {
  const Tensor result({times.elements(), width}, DType::f32, Device::cuda);
  check_gpu(kernels::sinusoid(times.data<float>(), times.elements(), width, result.data<float>(),
                              compute_stream()),
            "run sinusoid");
  return result;
}

}  // namespace vfm::ops
