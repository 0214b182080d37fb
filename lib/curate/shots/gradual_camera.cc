// Tests whether camera motion (one shift and zoom of the picture) explains a change that
// GradualDetector found.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "curate/measures/camera.h"
#include "curate/shots/gradual.h"

namespace vfm::curate {
namespace {

constexpr int kPlanes = 3;

/// Luma, u and v on the chroma grid.
using Planes = std::array<std::vector<float>, kPlanes>;
Planes planes_of(const SmallPicture& p) {
  std::array<std::uint8_t, kChromaCells> luma;
  halve_luma(p, luma);
  return {std::vector<float>(luma.begin(), luma.end()),
          {p.u.begin(), p.u.end()},
          {p.v.begin(), p.v.end()}};
}

/// Returns the mean absolute difference, luma plus chroma, in the overlap of the shifted pictures.
float left_over(const Planes& before, const Planes& after, const Shift& shift) {
  constexpr float kCentre = (kChromaSide - 1) / 2.f;
  float sum = 0;
  int count = 0;
  for (int y = 0; y < kChromaSide; ++y) {
    for (int x = 0; x < kChromaSide; ++x) {
      const float to_x = static_cast<float>(x + shift.dx + shift.zoom * (x - kCentre));
      const float to_y = static_cast<float>(y + shift.dy + shift.zoom * (y - kCentre));
      const int x0 = static_cast<int>(std::floor(to_x)), y0 = static_cast<int>(std::floor(to_y));
      if (x0 < 0 || y0 < 0 || x0 + 1 >= kChromaSide || y0 + 1 >= kChromaSide) continue;
      const float fx = to_x - static_cast<float>(x0), fy = to_y - static_cast<float>(y0);
      const auto from = static_cast<std::size_t>(y * kChromaSide + x);
      const auto to = static_cast<std::size_t>(y0 * kChromaSide + x0);
      for (int plane = 0; plane < kPlanes; ++plane) {
        const float* p = &after[plane][to];
        const float upper = p[0] + fx * (p[1] - p[0]);
        const float lower = p[kChromaSide] + fx * (p[kChromaSide + 1] - p[kChromaSide]);
        sum += std::abs(before[plane][from] - (upper + fy * (lower - upper)));
      }
      ++count;
    }
  }
  return sum / static_cast<float>(std::max(count, 1));
}

}  // namespace

/// Returns true if one shift and zoom of the whole picture explains most of the change from a to b,
/// in a few steps. A block of sky has too little contrast for MotionField, and its residuals of all
/// frames add up. All cells together have enough contrast over several frames. A change of shot
/// fails this test, because a shift does not explain the difference of unrelated pictures.
bool GradualDetector::camera_passes(std::int64_t a, std::int64_t b) const {
  constexpr float kLeaves = 0.65f;  // generated pans: at most 0.4, changes of shot: at least 0.9
  const int steps = static_cast<int>(std::min<std::int64_t>(b - a, 6));
  const float most = kLeaves * change(at(a), at(b));
  Planes before = planes_of(at(a).picture);
  float sum = 0;
  for (int i = 1; i <= steps && sum < most; ++i) {
    Planes after = planes_of(at(a + (b - a) * i / steps).picture);
    sum += left_over(before, after, estimate_shift(before[0], after[0], kChromaSide));
    before = std::move(after);
  }
  return sum < most;
}

}  // namespace vfm::curate
