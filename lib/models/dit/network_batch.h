// One batch of a diffusion network: a *pack* of samples of any sizes, images (one frame) and videos
// mixed, one after the other. Attention never crosses samples; each sample has its own noise level,
// frame rate, size and text.
// Shape letters: C latent channels, T frames, H, W, L text tokens of the pack, E text width.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::models {

struct NetworkConfig;  // models/dit/network.h

/// One sample of a pack. Sizes are of the latent, multiples of the patch size.
struct NetworkSample {
  int frames = 1, height = 0, width = 0;
  float fps = 0;        ///< frame rate of the pixels; 0: an image, with the index as time position
  float c_noise = 0;    ///< the time input (models/process/process.h)
  int text_tokens = 1;  ///< >= 1; "no text" is one zero token
  /// Step between the positions of neighbouring tokens along T, H, W. A step below 1 fits more
  /// tokens into the trained range of positions. Must be 1 if the tape records.
  std::array<double, 3> position_step = {1, 1, 1};
  /// The number of first frames that are not noisy. The time input of their tokens is 0, not
  /// c_noise. Above 0 only for GivenFramesBy::clean_time (models/dit/network.h).
  int clean_frames = 0;

  std::int64_t tokens(const NetworkConfig& config) const;
};

struct NetworkBatch {
  std::vector<NetworkSample> samples;
  Tensor latents;  ///< f32, flat: each sample's (C, T, H, W), already scaled by c_in, one after the
                   ///< other
  Tensor text;     ///< f32 (L, E): each sample's text tokens, one after the other
  /// f32, one number for each sample. If defined, it replaces the samples' c_noise. Then only
  /// tensors differ between batches of equal sizes, frame rates and clean frames, so that forward()
  /// can be recorded and repeated (tensor/graph_cache.h).
  Tensor c_noise;
  /// A network that computes in bf16 rounds the embedded noise level to bf16, as diffusers' Wan
  /// does. Other networks ignore it.
  bool round_embedding = false;
  int network = 0;  ///< the number of the network that it is for, of several

  Tensor noise_levels(Device device) const;  ///< the samples' c_noise on `device`
  /// Throws Error unless samples and tensors fit each other and the configuration.
  void check(const NetworkConfig& config) const;
};

}  // namespace vfm::models
