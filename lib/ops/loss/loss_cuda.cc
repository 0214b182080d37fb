// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "kernels/cross_entropy.h"
#include "kernels/diffusion.h"
#include "kernels/reconstruction.h"
#include "ops/loss/loss_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::noisy_pair(const Tensor& x0, std::span<const NoisySample> samples,
                      const NoisyPair& out) {
  std::vector<kernels::DiffusionSample> list;
  kernels::DiffusionPack pack;
  std::int64_t latents = 0;
  for (std::int64_t begin = 0; const NoisySample& from : samples) {
    kernels::DiffusionSample sample;
    sample.begin = begin;
    sample.count = from.count;
    sample.in = from.in;
    sample.in_noise = from.in_noise;
    sample.of_x0 = from.of_x0;
    sample.of_noise = from.of_noise;
    sample.latents = latents;
    sample.channel = from.channel;
    sample.given = from.given;
    sample.given_in = from.given_in;
    sample.given_noise = from.given_noise;
    std::ranges::copy(from.noise.cipher_key(), sample.key);
    std::ranges::copy(from.noise.stream(), sample.stream);
    list.push_back(sample);
    begin += from.count;
    latents += from.count + from.channel;
    pack.longest = std::max(pack.longest, from.count);
  }
  const Tensor there = upload(list);
  pack.samples = reinterpret_cast<const kernels::DiffusionSample*>(there.raw());
  pack.sample_count = static_cast<std::int64_t>(list.size());
  float* const noise = out.target.data<float>();  // for a while
  check_gpu(kernels::diffusion_noise(pack, noise, compute_stream()), "draw noise");
  check_gpu(kernels::diffusion_mix(pack, x0.data<float>(), noise, out.latents.data<float>(),
                                   out.target.data<float>(), compute_stream()),
            "mix samples with noise");
}

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

namespace vfm::ops::cuda {

namespace {

kernels::CrossEntropy call_of(const CrossEntropyArgs& args) {
  kernels::CrossEntropy call;
  call.tokens = args.tokens;
  call.vocabulary = args.vocabulary;
  call.first = args.first;
  call.z_loss = args.z_loss;
  call.scale = args.scale;
  call.logits = args.logits;
  call.targets = args.targets;
  call.losses = args.losses;
  call.part = args.part;
  call.parts = args.parts;
  call.shares = args.shares;
  return call;
}

}  // namespace

void cross_entropy_part(const CrossEntropyArgs& args) {
  check_gpu(kernels::cross_entropy_part(call_of(args), compute_stream()),
            "compute a share of the cross-entropy");
}

void cross_entropy(const CrossEntropyArgs& args) {
  check_gpu(kernels::cross_entropy(call_of(args), compute_stream()), "compute the cross-entropy");
}

}  // namespace vfm::ops::cuda
