// Mixtures of clean samples and noise for diffusion training: the network's input and its target,
// in one pass.
// Shape letters: N elements of the pack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/philox.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// The noise and mixing factors of the next `count` elements of a pack.
struct NoisySample {
  std::int64_t count = 0;
  float in = 0, in_noise = 0, of_x0 = 0, of_noise = 0;
  Random noise{0, Purpose::noise};  ///< noise e: its normal(0), normal(1), ...
  /// For video-to-world models: the number of elements of a channel; 0 otherwise. One more channel,
  /// the mark, follows the sample. The first `given` elements of each channel belong to given
  /// frames, which have other factors; there the mark is 1, elsewhere 0.
  std::int64_t channel = 0, given = 0;
  float given_in = 0, given_noise = 0;
};

struct NoisyPair {
  /// in x0 + in_noise e, in given frames given_in x0 + given_noise e; then the sample's mark.
  Tensor latents;
  Tensor target;  ///< of_x0 x0 - of_noise e, also in given frames, where it is unused
};

/// x0 is [N] f32. `target` has x0's shape; `latents` has it too, or is longer by the marks. Both
/// are on x0's device. A GPU's noise equals the CPU's to 4 units in the last place: it draws the
/// same random words, but takes logarithm, sine and cosine from its own library.
NoisyPair noisy_pair(const Tensor& x0, std::span<const NoisySample> samples);

}  // namespace vfm::ops
