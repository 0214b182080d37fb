// Samples with noise, and what a network should answer to them: the two mixtures of a clean sample
// and its noise that diffusion training needs, in one pass.
// Shape letters: N elements of the pack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/philox.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// How the next `count` elements of a pack become noisy.
struct NoisySample {
  std::int64_t count = 0;
  float in = 0, in_noise = 0, of_x0 = 0, of_noise = 0;
  Random noise{0, Purpose::noise};  ///< e is its normal(0), normal(1), ...
};

struct NoisyPair {
  Tensor latents;  ///< in x0 + in_noise e
  Tensor target;   ///< of_x0 x0 - of_noise e
};

/// x0 [N] f32; both results are like it, and where it is. A GPU's e are those of the CPU but for a
/// last bit here and there, where its library's logarithm, sine and cosine are.
NoisyPair noisy_pair(const Tensor& x0, std::span<const NoisySample> samples);

}  // namespace vfm::ops
