// Training with the diffusion process of models/process/process.h: noise levels, and noisy batches.
//
// Every sample of a pack has its own noise level and noise. The noise is a pure function of (seed,
// step, sample key). The noise level depends also on the sample's place in the whole step, which is
// the same on any number of ranks. Shape letters: C latent channels, T frames, H height, W width, L
// text tokens of the batch, E text width. Thread-safety: free functions, any thread.
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

/// Noise levels of the whole step in its order, not yet shifted and clamped: ln sigma = p_mean +
/// p_std * Phi^-1(u). The u of n samples are stratified: (0, 1) is cut into n strata, and each
/// sample gets one at random. So 16 samples cover the distribution as thousands of independent ones
/// would.
class StepLevels {
 public:
  /// Keeps the reference. The step has `of_step` samples.
  StepLevels(const DiffusionRecipe& recipe, std::uint64_t seed, std::uint32_t step,
             std::size_t of_step);
  /// The noise level of the sample at this place in the order of the step.
  double at(std::size_t place, const std::string& key) const;

 private:
  const DiffusionRecipe& recipe_;
  std::uint64_t seed_;
  std::uint32_t step_;
  std::vector<std::uint64_t> strata_;  // stratum of each place
};
/// The noise level of a sample: `drawn`, shifted, for a video once more if the recipe says so, then
/// clamped.
double sample_level(const DiffusionRecipe& recipe, double drawn, int frames);

/// Conditioning of a video-to-world model: the first latent frames of a sample are given, with
/// noise of their own.
struct Condition {
  int frames = 0;    ///< number of given frames, less than the sample has; 0 for an image
  double level = 0;  ///< noise level of the given frames
};
/// `random` is (seed, condition, step, sample key). The noise level is clamped as the sample's is.
Condition draw_condition(const DiffusionRecipe& recipe, const Random& random, int sample_frames);

/// Clean samples with noise, ready for the network, and the target of its output.
struct NoisyBatch {
  models::NetworkBatch input;
  Tensor target;                        ///< each sample's (C, T, H, W)
  std::vector<ops::ErrorSample> parts;  ///< the samples' parts of output and target

  /// A copy with the tensors on `device`.
  NoisyBatch to(Device device) const;
};

/// A batch before noise is added: batch.input.latents are x0, and batch.target is undefined.
struct CleanBatch {
  NoisyBatch batch;
  std::vector<ops::NoisySample> noise;  ///< noise of each sample
};
/// Adds the noise on the device of the latents.
NoisyBatch add_noise(const CleanBatch& clean);

/// Packs samples one after the other. add() takes each sample's noise level, whether to drop its
/// text, its random stream for noise, and its given frames. A sample without text counts as
/// dropped. Given frames are noisy as at given.level; if there are none, the mask is 0. A
/// dropped text is one zero token, even if other texts are padded with more zero tokens: attention
/// over equal keys is attention over one.
class BatchBuilder {
 public:
  explicit BatchBuilder(const models::NetworkConfig& config, int text_padding = 0,
                        models::Process process = models::Process::edm)
      : config_(config), text_padding_(text_padding), process_(process) {}
  void add(const CleanSample& sample, double level, bool without_text, const Random& noise,
           Condition given = {});
  std::size_t samples() const { return samples_.size(); }
  CleanBatch build_clean() const;
  NoisyBatch build() const { return add_noise(build_clean()); }

 private:
  models::NetworkConfig config_;
  int text_padding_;
  models::Process process_;
  std::vector<models::NetworkSample> samples_;
  std::vector<ops::NoisySample> noise_;
  std::vector<float> x0_, text_;
};

}  // namespace vfm::train
