// How ShotDetector finds cuts between scenes whose frames all differ.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/shots/shot_detector.h"

namespace vfm::curate {
namespace {

constexpr int kFrames = 4;      // on each side
constexpr float kOther = 24;    // grey levels, luma plus chroma, by which a cell differs
constexpr float kHalf = 0.45f;  // of the cells

/// Sums of luma, u and v over a cell of 4 x 4 luma cells, with equal weights.
struct CellSum {
  int y = 0, u = 0, v = 0;

  void add(const SmallPicture& p, int row, int column) {
    for (int i = 0; i < 16; ++i)
      y += p.y[(4 * row + i / 4) * kLumaSide + 4 * column + i % 4];
    for (int i = 0; i < 4; ++i) {
      const int at = (2 * row + i / 2) * kChromaSide + 2 * column + i % 2;
      u += 4 * p.u[at];
      v += 4 * p.v[at];
    }
  }
  bool other_than(const CellSum& o) const {
    return std::abs(y - o.y) + std::abs(u - o.u) + std::abs(v - o.v) > kOther * 16 * kFrames;
  }
};

}  // namespace

/// Returns true if frame f begins another scene but does not stand out, because the frames around f
/// change nearly as much (a fight, a crowd, a chase). The score of f must be above the threshold
/// and the highest one around. Colours must be constant before f and after f, and differ in about
/// half of the picture: a title changes less, and colours are not constant while a camera swings.
/// The frame before f is ignored, because a movement across the cut is fastest there.
bool ShotDetector::begins_restless(std::int64_t f) const {
  constexpr float kColours = 0.1f, kOthers = 0.3f;  // histogram_difference of one scene, of two
  const std::int64_t before = f - 1 - kFrames;
  if (before < std::max<std::int64_t>(1, frames_ - kRing) || f + kFrames > frames_ ||
      scores_[slot(f)].combined < threshold_)
    return false;
  for (std::int64_t i = before + 1; i < f + kFrames; ++i)  // `before` may begin a shot itself
    if (scores_[slot(i)].combined > scores_[slot(f)].combined) return false;
  const auto apart = [&](std::int64_t i, std::int64_t k) {
    return histogram_difference(ring_[slot(i)], ring_[slot(k)]);
  };
  for (int i = 0; i < kFrames; ++i) {
    for (int k = 0; k < kFrames; ++k) {
      if (apart(before + i, f + k) < kOthers) return false;
      if (k > i && std::max(apart(before + i, before + k), apart(f + i, f + k)) > kColours)
        return false;
    }
  }
  const ActiveArea area = join(ring_[slot(before)].area, ring_[slot(f)].area);
  int cells = 0, others = 0;
  for (int row = (area.top + 3) / 4; row < area.bottom / 4; ++row) {
    for (int column = (area.left + 3) / 4; column < area.right / 4; ++column) {
      CellSum was, is;
      for (int i = 0; i < kFrames; ++i) {
        was.add(ring_[slot(before + i)].picture, row, column);
        is.add(ring_[slot(f + i)].picture, row, column);
      }
      ++cells;
      others += is.other_than(was);
    }
  }
  return static_cast<float>(others) > kHalf * static_cast<float>(cells);
}

}  // namespace vfm::curate
