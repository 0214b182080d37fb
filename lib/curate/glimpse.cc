// SPDX-License-Identifier: Apache-2.0
#include "curate/glimpse.h"

#include <algorithm>
#include <cmath>

namespace vfm::curate {

GlimpsePlan plan_glimpse(std::int64_t frames, double fps) {
  GlimpsePlan plan;
  if (frames > 1) {
    const auto eighth = static_cast<std::int64_t>(std::lround(std::clamp(fps, 0.0, 1000.0) / 8));
    plan.step = std::clamp<std::int64_t>(eighth, 1, frames - 1);
  }
  const std::int64_t starts = frames - plan.step;
  const int count = frames > 1 ? kGlimpsePictures : 1;
  for (int i = 0; i < count; ++i)
    plan.first.push_back((2 * i + 1) * starts / (2 * count));
  return plan;
}

std::vector<float> luma_of(const media::RgbImage& image) {
  std::vector<float> out(image.pixels.size() / 3);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint8_t* p = &image.pixels[3 * i];
    out[i] = (0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]) / 255.0f;
  }
  return out;
}

std::vector<float> halve(const std::vector<float>& square, int size) {
  const auto n = static_cast<std::size_t>(size), half = n / 2;
  std::vector<float> out(half * half);
  for (std::size_t y = 0; y < half; ++y)
    for (std::size_t x = 0; x < half; ++x) {
      const float* p = &square[2 * y * n + 2 * x];
      out[y * half + x] = (p[0] + p[1] + p[n] + p[n + 1]) / 4;
    }
  return out;
}

}  // namespace vfm::curate
