// The network as a denoiser: the estimate of a clean latent, guided, with condition frames.
//
// With the prompt c and the negative prompt u the estimate is c + g (c - u). Both are samples of
// one pack. A network takes the latent frames that are given, the clip's first, in one of three
// ways (models::GivenFramesBy):
//
//   mark             A further channel is 1 in given frames and 0 in others. In given frames the
//                    input is not the state, but the given latent with a little noise of its own,
//                    augment_sigma, scaled as at that noise level; and the estimate is the given
//                    latent. From the noise level augment_sigma down, given frames are denoised
//                    like the others, but stay marked.
//   clean_time       In given frames input and estimate are the given latent, and the noise level
//                    is 0.
//   mask_and_latent  After the state come channels that are 1 in given frames and 0 in others, and
//                    the latent of a clip that begins with the given frames and is grey. Given
//                    frames are denoised like the others.
//
// Of a model with two networks, each estimate is asked of the network of its noise level, and g may
// be another one there.
// Sources: diffusers' pipeline_cosmos_text2world.py, pipeline_cosmos_video2world.py and
// pipeline_wan_i2v.py, whose trajectories are the same; NVIDIA, cosmos-predict1.
// models/process/sampler.h begins and moves the state.
// Shape letters: C latent channels, T H W of the latent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "generate/ranks/clip_network.h"
#include "generate/sampling/sample_options.h"
#include "models/dit/network.h"
#include "text/encoder.h"

namespace vfm::generate {

/// Returns the steps between neighbouring tokens' positions along T, H, W, for a latent of `size`
/// and a network trained up to `trained`: 1 within that size, smaller beyond.
std::array<double, 3> position_steps(const std::array<int, 3>& size,
                                     const std::array<int, 3>& trained,
                                     const std::array<int, 3>& patch);

/// One clip as the network sees it.
struct DenoiseInput {
  models::NetworkSample sample;  ///< sizes, rate and positions; text and noise level are filled in
  int channels = 0;              ///< C
  /// Embeddings of the prompt and, for guidance, of the negative prompt; at least one token each.
  std::vector<text::TokenEmbeddings> texts;
  models::GivenFramesBy given_by = models::GivenFramesBy::none;
  int given_frames = 0;  ///< latent frames that are given, below T
  /// (C, given_frames, H, W), in model units; for mask_and_latent (C, T, H, W), of the grey clip.
  std::vector<float> given;
  bool round_time = false;  ///< the time input is rounded to bf16
  /// ModelFacts::boundary: lower levels are for the second network. 0: there is one.
  double boundary = 0;
};

class Denoiser {
 public:
  /// `levels`: noise_levels(options), of all later estimates. The noise on given frames is that of
  /// (`seed`, condition_noise, the level's place, `key`), so earlier steps do not change it.
  /// `network` must outlive this object.
  Denoiser(const ClipNetwork& network, DenoiseInput input, SampleOptions options,
           std::vector<double> levels, std::uint64_t seed, std::uint64_t key);

  /// The same as sampler.h's Denoise. `x` and `x0` are (C, T, H, W). Honours base/stop.h.
  void estimate(std::span<const double> x, double sigma, std::span<double> x0);

  /// Returns the network's input batch for `x` at `sigma`. Valid until the next call.
  const models::NetworkBatch& batch(std::span<const double> x, double sigma);

 private:
  bool overlays(double sigma) const;
  void put_given(std::span<float> input, std::size_t half, std::size_t level) const;
  void put_marks(std::span<float> rest) const;

  const ClipNetwork::Clip network_;
  DenoiseInput input_;
  SampleOptions options_;
  std::vector<double> levels_, times_;
  std::uint64_t seed_, key_;
  std::vector<models::NetworkSample> samples_;  // one for each text
  Tensor text_;                                 // of all of them
  models::NetworkBatch batch_;
};

}  // namespace vfm::generate
