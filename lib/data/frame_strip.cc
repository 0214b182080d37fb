// SPDX-License-Identifier: Apache-2.0
#include "data/frame_strip.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/container/picture_file.h"

namespace vfm::data {
namespace {

constexpr int kMost = 5;

}  // namespace

std::string frame_strip(std::span<const float> original, std::span<const float> decoded, int frames,
                        int height, int width) {
  const std::size_t h = static_cast<std::size_t>(height), w = static_cast<std::size_t>(width);
  const std::size_t plane = h * w, all = static_cast<std::size_t>(frames);
  if (original.size() != 3 * all * plane || decoded.size() != original.size())
    fail("a strip of {} values and {}, which are not 3 x {} x {} x {}", original.size(),
         decoded.size(), frames, height, width);
  const auto count = static_cast<std::size_t>(std::min(kMost, frames));
  media::RgbImage image{static_cast<int>(w * count), static_cast<int>(2 * h), {}};
  image.pixels.resize(3 * 2 * plane * count);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t frame = count == 1 ? 0 : n * (all - 1) / (count - 1);
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t i = 0; i < plane; ++i)
        for (std::size_t colour = 0; colour < 3; ++colour) {
          const float value = (half == 0 ? original : decoded)[(colour * all + frame) * plane + i];
          const std::size_t y = half * h + i / w, x = n * w + i % w;
          image.pixels[3 * (y * w * count + x) + colour] = static_cast<std::uint8_t>(
              std::lround(std::clamp((value + 1) * 127.5f, 0.0f, 255.0f)));
        }
  }
  return media::encode_png(image);
}

}  // namespace vfm::data
