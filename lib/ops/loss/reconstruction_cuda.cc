// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/reconstruction_cuda.h"

#include "kernels/reconstruction.h"
#include "tensor/device.h"

namespace vfm::ops {

static_assert(kernels::kMostLevels == kMostFsqLevels);

void fsq_cuda(const Tensor& z, const FsqLevels& levels, const Tensor& gradient, const Tensor& out) {
  kernels::Fsq call;
  call.levels.dimensions = static_cast<int>(levels.dimensions);
  for (std::size_t d = 0; d < levels.dimensions; ++d) {
    call.levels.half[d] = levels.half[d];
    call.levels.offset[d] = levels.offset[d];
    call.levels.shift[d] = levels.shift[d];
    call.levels.middle[d] = levels.middle[d];
    call.levels.lowest[d] = levels.lowest[d];
    call.levels.highest[d] = levels.highest[d];
  }
  call.count = z.elements();
  call.z = z.data<float>();
  if (gradient.defined()) call.gradient = gradient.data<float>();
  call.out = out.data<float>();
  check_gpu(kernels::fsq(call, compute_stream()), "quantise to levels");
}

void pixel_error_cuda(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                      double scale, const PixelError& out) {
  kernels::PixelError call;
  call.count = output.elements();
  const Tensor partial(
      {kernels::pixel_error_partials(call.count) * static_cast<std::int64_t>(sizeof(double))},
      DType::u8, Device::cuda);
  call.output = output.data<float>();
  call.target = target.data<float>();
  call.l1 = static_cast<float>(weights.l1);
  call.l2 = static_cast<float>(weights.l2);
  call.scale = static_cast<float>(scale);
  if (scale != 0) call.seed = out.seed.data<float>();
  call.partial = reinterpret_cast<double*>(partial.raw());
  call.sums = reinterpret_cast<double*>(out.sums.raw());
  check_gpu(kernels::pixel_error(call, compute_stream()), "compute the loss of a reconstruction");
}

}  // namespace vfm::ops
