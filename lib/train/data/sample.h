// A sample as it enters the network's world.
// Shape letters: C latent channels, T frames, H, W, E text width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm::train {

/// Latents are in model units (models::LatentScale). Of a tokenizer, pixels alone.
struct CleanSample {
  std::string key;
  int frames = 1, height = 0, width = 0;  ///< of the latent, or of the pixels
  double fps = 0;                         ///< 0 for an image
  std::vector<float> x0;                  ///< (C, T, H, W); empty if discrete
  std::vector<std::int32_t> codes;        ///< (T, H, W); empty if continuous
  std::vector<float> text;                ///< (text tokens, E); may be empty
  std::vector<float> pixels = {};         ///< (3, T, H, W), RGB in [-1, 1]
  std::int64_t read_bytes = 0;            ///< from files, for it
};

}  // namespace vfm::train
