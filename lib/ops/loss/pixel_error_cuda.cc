// SPDX-License-Identifier: Apache-2.0
#include "kernels/reconstruction.h"
#include "ops/loss/pixel_error_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
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
