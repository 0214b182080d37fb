// A picture for the tests, and how far two are apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "media/colour/scaler.h"

/// Smooth, so that codecs keep it well; moves with `t`, so that frames differ.
inline vfm::media::RgbImage test_picture(int width, int height, int t = 0) {
  vfm::media::RgbImage image{width, height, {}};
  image.pixels.resize(static_cast<std::size_t>(3 * width * height));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = &image.pixels[static_cast<std::size_t>(3 * (y * width + x))];
      p[0] = static_cast<std::uint8_t>(128 + 90 * std::sin(0.1 * (x + 2 * t)));
      p[1] = static_cast<std::uint8_t>(128 + 90 * std::sin(0.07 * (y + t)));
      p[2] = static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * (x + y)));
    }
  return image;
}

/// Peak signal to noise ratio in dB; 99 for equal images.
inline double psnr(const vfm::media::RgbImage& a, const vfm::media::RgbImage& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    const double d = static_cast<double>(a.pixels[i]) - b.pixels[i];
    sum += d * d;
  }
  const double mse = sum / static_cast<double>(a.pixels.size());
  return mse == 0 ? 99 : 10 * std::log10(255 * 255 / mse);
}
