// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/diffusion.h"
#include "ops/loss/squared_error_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::squared_error(const Tensor& output, const Tensor& target,
                         std::span<const ErrorSample> samples, double scale,
                         const SquaredError& out) {
  std::vector<kernels::DiffusionSample> list;
  kernels::DiffusionLoss call;
  for (std::int64_t begin = 0; const auto& [count, channel, given] : samples) {
    kernels::DiffusionSample sample;
    sample.begin = begin;
    sample.count = count;
    sample.channel = channel;
    sample.given = given;
    list.push_back(sample);
    begin += count;
    call.pack.longest = std::max(call.pack.longest, count);
  }
  const Tensor there = upload(list);
  call.pack.samples = reinterpret_cast<const kernels::DiffusionSample*>(there.raw());
  call.pack.sample_count = static_cast<std::int64_t>(list.size());
  const Tensor partial(
      {kernels::diffusion_partials(call.pack) * static_cast<std::int64_t>(sizeof(double))},
      DType::u8, Device::cuda);
  call.output = output.data<float>();
  call.target = target.data<float>();
  call.scale = scale;
  if (scale != 0) call.seed = out.seed.data<float>();
  call.partial = reinterpret_cast<double*>(partial.raw());
  call.sums = reinterpret_cast<double*>(out.sums.raw());
  check_gpu(kernels::diffusion_loss(call, compute_stream()), "compute the loss");
}

}  // namespace vfm::ops
