// The structural similarity against scikit-image's (scripts/golden/ssim.py, which prints the
// numbers here).
// SPDX-License-Identifier: Apache-2.0
#include "models/ssim.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"

using namespace vfm;
using models::ssim;

namespace {

/// One frame [1, H, W, 3], as the script draws it.
Tensor picture(int height, int width, int kind) {
  const Tensor frame({1, height, width, 3});
  float* at = frame.data<float>();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const double value = (7 * x + 13 * y + 29 * c + x * y) % 64 / 31.5 - 1;
        const double noise = (x * x + 3 * y * y * x + 5 * c) % 17 / 8.0 - 1;
        const double kinds[] = {value, 0.8 * value + 0.1, value + 0.2 * noise, -value, noise};
        *at++ = static_cast<float>(kinds[kind]);
      }
  return frame;
}

}  // namespace

TEST_CASE("the SSIM of frames is scikit-image's") {
  struct Known {
    int height, width, kind;
    double value;
  };
  constexpr Known kKnown[] = {
      {11, 11, 0, 1.000000000000},  {11, 11, 1, 0.972054798576},  {11, 11, 2, 0.969218289039},
      {11, 11, 3, -0.958188889419}, {11, 11, 4, -0.266137472027}, {16, 24, 0, 1.000000000000},
      {16, 24, 1, 0.971660274907},  {16, 24, 2, 0.969652725910},  {16, 24, 3, -0.952377145929},
      {16, 24, 4, -0.040045805903}, {37, 19, 0, 1.000000000000},  {37, 19, 1, 0.971881948172},
      {37, 19, 2, 0.972949352483},  {37, 19, 3, -0.954272248828}, {37, 19, 4, -0.061878047927},
  };
  for (const auto& [height, width, kind, value] : kKnown) {
    INFO(height << " x " << width << ", kind " << kind);
    const double found = ssim(picture(height, width, 0), picture(height, width, kind));
    CHECK(std::abs(found - value) < 1e-9);
  }
}

TEST_CASE("the SSIM of a clip is the mean over its frames, on any number of threads") {
  const Tensor clip({3, 16, 24, 3}), decoded({3, 16, 24, 3});
  double sum = 0;
  for (int n = 0; n < 3; ++n) {
    copy(picture(16, 24, 0), clip.rows(n, n + 1));
    copy(picture(16, 24, n + 1), decoded.rows(n, n + 1));
    sum += ssim(picture(16, 24, 0), picture(16, 24, n + 1));
  }
  const double found = ssim(clip, decoded);
  CHECK(found == Approx(sum / 3).epsilon(1e-12));
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  CHECK(ssim(clip, decoded) == found);
  omp_set_num_threads(before);
}

TEST_CASE("an SSIM that is none is refused, or not a number") {
  CHECK_THROWS_AS(ssim(picture(10, 16, 0), picture(10, 16, 1)), Error);
  CHECK_THROWS_AS(ssim(picture(16, 16, 0), picture(16, 17, 0)), Error);
  const Tensor broken = picture(16, 16, 0);
  broken.data<float>()[100] = std::nanf("");
  CHECK(std::isnan(ssim(picture(16, 16, 0), broken)));
}
