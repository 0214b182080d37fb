// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "kernels/diffusion.h"
#include "ops/loss/noisy_pair_kernels.h"
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

}  // namespace vfm::ops
