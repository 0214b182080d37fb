// The pictures that GradualDetector compares: means of 4 x 4 cells, minus the picture's mean.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/shots/gradual.h"

namespace vfm::curate {

float GradualDetector::dot(const Relief& a, const Relief& b) {
  std::array<float, 8> lanes{};  // fixed order of additions, and the loop vectorises
  for (int i = 0; i < kCells; i += 8)
    for (int k = 0; k < 8; ++k)
      lanes[k] += a.cells[i + k] * b.cells[i + k];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

float GradualDetector::correlation(const Relief& a, const Relief& b) {
  return dot(a, b) / std::sqrt(std::max(a.energy * b.energy, 1e-3f));
}

/// Doubles chroma, so that each plane has the same weight by area.
GradualDetector::Relief GradualDetector::relief_of(const SmallPicture& p, const ActiveArea& area) {
  Relief out;
  const auto shrink = [&](const std::uint8_t* cells, int side, float scale, float* to) {
    const int n = side / 4, part = kLumaSide / n;
    float mean = 0;
    int inside = 0;
    const auto is_inside = [&](int x, int y) {
      return x * part >= area.left && (x + 1) * part <= area.right && y * part >= area.top &&
             (y + 1) * part <= area.bottom;
    };
    for (int y = 0; y < n; ++y) {
      for (int x = 0; x < n; ++x) {
        int sum = 0;
        for (int i = 0; i < 4; ++i)
          for (int k = 0; k < 4; ++k)
            sum += cells[(4 * y + i) * side + 4 * x + k];
        to[y * n + x] = scale / 16 * static_cast<float>(sum);
        if (is_inside(x, y)) mean += to[y * n + x], ++inside;
      }
    }
    mean /= static_cast<float>(std::max(inside, 1));
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x)
        to[y * n + x] = is_inside(x, y) ? to[y * n + x] - mean : 0;
  };
  shrink(p.y.data(), kLumaSide, 1, out.cells.data());
  shrink(p.u.data(), kChromaSide, 2, out.cells.data() + 256);
  shrink(p.v.data(), kChromaSide, 2, out.cells.data() + 320);
  out.energy = dot(out, out);
  return out;
}

/// Returns frame i within `area`. If the bars of frame i differ, makes the relief in `scratch`.
const GradualDetector::Relief& GradualDetector::within(const ActiveArea& area, std::int64_t i,
                                                       Relief& scratch) const {
  const Tiny& kept = at(i);
  if (kept.area == area) return kept;
  return scratch = relief_of(kept.picture, area);
}

}  // namespace vfm::curate
