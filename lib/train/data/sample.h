// A sample as the network takes it. Shape letters: C latent channels, T frames, H height, W width,
// E text width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm::train {

/// Latents are in model units (models::LatentScale). To train a tokenizer there are only pixels.
struct CleanSample {
  std::string key;
  int frames = 1, height = 0, width = 0;  ///< size of the latent, or of the pixels
  double fps = 0;                         ///< 0 for an image
  std::vector<float> x0;                  ///< (C, T, H, W); empty if discrete
  std::vector<std::int32_t> codes;        ///< (T, H, W); empty if continuous
  std::vector<float> text;                ///< (text tokens, E); may be empty
  std::vector<float> pixels = {};         ///< (3, T, H, W), RGB in [-1, 1]
  std::int64_t read_bytes = 0;            ///< bytes read from files
};

}  // namespace vfm::train
