// The diffusion process of training: noise levels, noisy batches, the loss.
//
// Every sample of a pack has its own noise level, noise and text dropout, each a pure function of
// (seed, step, sample key), or for the noise level also of the sample's place in the whole step,
// which is the same on any number of ranks. The frame (c_in, c_out, ...) is models/edm.h. Shape
// letters: C latent channels, T frames, H, W, L text tokens of the batch, E text width.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "models/network.h"
#include "ops/noisy_pair.h"
#include "ops/squared_error.h"
#include "train/loss_sums.h"
#include "train/recipe.h"
#include "train/sample.h"

namespace vfm::train {

/// Noise levels of the whole step, in its order: ln sigma = p_mean + p_std * Phi^-1(u), where the u
/// of n samples lie in n strata of (0, 1), one in each, dealt at random: a step of 16 sees the
/// distribution that a batch of thousands would. `keys` names the samples. Not yet clamped.
std::vector<double> draw_sigmas(const DiffusionRecipe& recipe, std::uint64_t seed,
                                std::uint32_t step, std::span<const std::string> keys);
/// What the sample is trained at: times sqrt(frames) if videos are noised more, then clamped.
double sample_sigma(const DiffusionRecipe& recipe, double drawn, int frames);
/// Whether the sample is trained without its text in this step; `rate` is how often.
bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key);

/// Clean samples with noise, ready for the network, and what it should answer.
struct NoisyBatch {
  models::DitBatch input;
  Tensor target;                       ///< like input.latents: (x0 - c_skip x) / c_out
  std::vector<std::int64_t> elements;  ///< of each sample's latent

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
/// is when it has none: one zero token stands for it), and the stream its noise comes from.
class BatchBuilder {
 public:
  BatchBuilder(const models::DitConfig& config) : config_(config) {}
  void add(const CleanSample& sample, double sigma, bool without_text, const Random& noise);
  std::size_t samples() const { return samples_.size(); }
  CleanBatch build_clean() const;
  NoisyBatch build() const { return add_noise(build_clean()); }

 private:
  models::DitConfig config_;
  std::vector<models::DitSample> samples_;
  std::vector<ops::NoisySample> noise_;
  std::vector<float> x0_, text_;
};

/// The loss lambda(sigma) (D - x0)^2 = (F - target)^2 of a batch.
struct Loss {
  ops::SquaredError error;  ///< its seed: scale * gradient of the *sum* by F; undefined for scale 0

  /// On a GPU it waits for the batch, so do it after what follows is queued. `batch` is the same.
  LossSums sums(const NoisyBatch& batch) const;
};

/// `output` is the network's F, on the batch's device. Divide by the step's number of elements
/// after all ranks have added theirs: then every element of the step weighs the same, however
/// samples are packed and dealt.
Loss diffusion_loss(const Tensor& output, const NoisyBatch& batch, double scale);

}  // namespace vfm::train
