// Pictures of the noise that scripts/golden/pictures.py makes of a seed, so that what Python
// programs make of them can be compared without keeping the pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/encoder/picture_resize.h"

namespace vfm {

struct NoisePicture {
  NoisePicture(int width, int height, std::uint32_t seed)
      : bytes(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height)),
        view{width, height, bytes} {
    for (std::uint8_t& byte : bytes) {
      seed = seed * 1664525 + 1013904223;
      byte = static_cast<std::uint8_t>(seed >> 24);
    }
  }
  NoisePicture(const NoisePicture&) = delete;
  NoisePicture& operator=(const NoisePicture&) = delete;

  std::vector<std::uint8_t> bytes;
  models::PictureView view;
};

}  // namespace vfm
