// The diffusion process of training: noise levels, and noisy batches.
//
// Every sample of a pack has its own noise level and noise, each a pure function of (seed, step,
// sample key), or for the noise level also of the sample's place in the whole step, which is the
// same on any number of ranks. The frame (c_in, c_out, ...) is models/dit/edm.h. Shape letters: C
// latent channels, T frames, H, W, L text tokens of the batch, E text width.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/philox.h"
#include "models/dit/network.h"
#include "ops/loss/noisy_pair.h"
#include "ops/loss/squared_error.h"
#include "train/data/sample.h"
#include "train/diffusion/recipe.h"

namespace vfm::train {

/// Noise levels of the whole step, in its order: ln sigma = p_mean + p_std * Phi^-1(u), where the u
/// of n samples lie in n strata of (0, 1), one in each, dealt at random: 16 samples cover the
/// distribution as thousands of independent ones would. Not yet clamped.
class StepSigmas {
 public:
  /// Keeps the reference. The step has `of_step` samples.
  StepSigmas(const DiffusionRecipe& recipe, std::uint64_t seed, std::uint32_t step,
             std::size_t of_step);
  /// That of the sample at this place in the order of the step.
  double at(std::size_t place, const std::string& key) const;

 private:
  const DiffusionRecipe& recipe_;
  std::uint64_t seed_;
  std::uint32_t step_;
  std::vector<std::uint64_t> strata_;  // of each place
};
/// The noise level of the sample: times sqrt(frames) if videos are noised more, then clamped.
double sample_sigma(const DiffusionRecipe& recipe, double drawn, int frames);

/// What a video-to-world model is given of a sample: its first latent frames, with noise of their
/// own.
struct Condition {
  int frames = 0;    ///< below the sample's; of an image none
  double sigma = 0;  ///< noise level of the given frames
};
/// `random` is (seed, condition, step, sample key). The noise level is clamped as the sample's is.
Condition draw_condition(const DiffusionRecipe& recipe, const Random& random, int sample_frames);

/// Clean samples with noise, ready for the network, and what it should answer.
struct NoisyBatch {
  models::NetworkBatch input;
  Tensor target;                        ///< each sample's (C, T, H, W): (x0 - c_skip x) / c_out
  std::vector<ops::ErrorSample> parts;  ///< of output and target

  /// The same with its tensors on `device`.
  NoisyBatch to(Device device) const;
};

/// The same before the noise comes: input.latents are x0, there is no target.
struct CleanBatch {
  NoisyBatch batch;
  std::vector<ops::NoisySample> noise;  ///< of each sample
};
/// Adds the noise where the latents are.
NoisyBatch add_noise(const CleanBatch& clean);

/// Packs samples one after the other. Per sample: sigma, whether its text is dropped (as it
/// is when it has none), the stream its noise comes from, and what is given of it. Given frames are
/// c_in(given.sigma) (x0 + given.sigma e) to the network; without them the mark is 0. One zero
/// token stands for no text, also where texts are filled up with more of them: attention over equal
/// keys is attention over one.
class BatchBuilder {
 public:
  explicit BatchBuilder(const models::NetworkConfig& config, int text_padding = 0)
      : config_(config), text_padding_(text_padding) {}
  void add(const CleanSample& sample, double sigma, bool without_text, const Random& noise,
           Condition given = {});
  std::size_t samples() const { return samples_.size(); }
  CleanBatch build_clean() const;
  NoisyBatch build() const { return add_noise(build_clean()); }

 private:
  models::NetworkConfig config_;
  int text_padding_;
  std::vector<models::NetworkSample> samples_;
  std::vector<ops::NoisySample> noise_;
  std::vector<float> x0_, text_;
};

}  // namespace vfm::train
