// The EDM frame around the network, shared by training and generation so that the two cannot drift
// apart: preconditioning, loss weight, and the scale in which the network sees latents.
//
// x0 is a latent in *model units* (LatentScale below: channels have standard deviation
// sigma_data), x = x0 + sigma * noise what the network is asked to clean, F the raw network output:
//
//   D(x; sigma) = c_skip x + c_out F(c_in x, c_noise, text)          the estimate of x0
//   loss = lambda(sigma) (D - x0)^2 = (F - (x0 - c_skip x) / c_out)^2
//
// The last equation holds because lambda = 1 / c_out^2: in units of F every noise level weighs the
// same. Everything about sigma is double: c_skip and c_out cancel badly in float at large sigma.
// Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models"
// (NeurIPS 2022), table 1; sigma_data 0.5 as there and in Cosmos.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::models {

/// Root mean square of the channels' standard deviations in x0, in model units.
inline constexpr double kSigmaData = 0.5;

/// The four coefficients at one noise level.
struct EdmScaling {
  double skip = 0;   ///< sigma_data^2 / (sigma^2 + sigma_data^2)
  double out = 0;    ///< sigma sigma_data / sqrt(sigma^2 + sigma_data^2)
  double in = 0;     ///< 1 / sqrt(sigma^2 + sigma_data^2)
  double noise = 0;  ///< ln(sigma) / 4, the time input of the network
};

/// sigma > 0.
inline EdmScaling edm_scaling(double sigma, double sigma_data = kSigmaData) {
  const double variance = sigma * sigma + sigma_data * sigma_data;
  const double root = std::sqrt(variance);
  return {sigma_data * sigma_data / variance, sigma * sigma_data / root, 1.0 / root,
          0.25 * std::log(sigma)};
}

/// Tokenizer latents to model units and back:
/// model = (latent - mean) / std * sigma_data, with statistics for each channel, or for each
/// channel and latent frame: a causal tokenizer's first frame stands alone and differs from those
/// after it. Measured by vfm-pack, or the tokenizer's own (Cosmos: 16 channels x 16 frames). Kept
/// in latents.json and in the checkpoint as {"mean":[...],"std":[...]} and, above 1, "frames".
struct LatentScale {
  std::vector<double> mean, std;  ///< (C, F), the frame fastest; std > 0
  int frames = 1;                 ///< F; frames beyond the last have the last one's statistics

  /// Throws Error, naming `what`, unless both lists are there, equally long, finite, std > 0, and
  /// made of whole channels.
  static LatentScale from_json(const Json& value, std::string_view what);
  Json to_json() const;
  std::size_t channels() const { return mean.size() / static_cast<std::size_t>(frames); }
  /// The scale that whitens by `degree`, 0 to 1: a channel's standard deviation in x0 is
  /// proportional to its own to the power 1 - degree, and their root mean square stays sigma_data.
  /// 1 is this scale itself; below 1, channels that hold little of the picture weigh less than
  /// those that hold much.
  LatentScale whitened(double degree) const;

  /// `latent` is (C, T, anything) with C = channels() and T = latent_frames, which the first
  /// latent_frames of the statistics describe; in place.
  void to_model(std::span<float> latent, int latent_frames) const;
  void from_model(std::span<float> latent, int latent_frames) const;
};

}  // namespace vfm::models
