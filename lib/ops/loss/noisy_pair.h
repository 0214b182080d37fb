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
  /// For video-to-world models: the elements of a channel; one more channel follows, the mark. 0:
  /// none does. The first `given` elements of each channel are of given frames, which are mixed
  /// otherwise: there the mark is 1, elsewhere 0.
  std::int64_t channel = 0, given = 0;
  float given_in = 0, given_noise = 0;
};

struct NoisyPair {
  /// in x0 + in_noise e, of given frames given_in x0 + given_noise e; then the sample's mark.
  Tensor latents;
  Tensor target;  ///< of_x0 x0 - of_noise e, also at given frames, where it is of no use
};

/// x0 [N] f32. target is like it, latents longer by the marks; both are where it is. A GPU's e are
/// those of the CPU to 4 units in the last place: it draws the same words and takes logarithm, sine
/// and cosine from its own library.
NoisyPair noisy_pair(const Tensor& x0, std::span<const NoisySample> samples);

}  // namespace vfm::ops
