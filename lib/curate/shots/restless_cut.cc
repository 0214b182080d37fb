// How ShotDetector finds cuts between scenes whose frames all differ.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/shots/shot_detector.h"

namespace vfm::curate {
namespace {

constexpr int kFrames = 4;      // on either side
constexpr float kOther = 24;    // grey levels, luma plus chroma, by which a cell is another
constexpr float kHalf = 0.45f;  // of the cells, nearly

/// Sums of luma, u and v over a cell of 4 x 4 (of chroma 2 x 2), weighed alike.
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

/// Whether frame f begins another scene, though it does not stand out where the frames around it
/// lose nearly as much (a fight, a crowd, a chase). Alone it would be a cut, and it loses the most;
/// and the colours, which stay in such a scene while all moves, are others from f on, over half of
/// the picture: a title and its ground change less of it, and colours do not stay while a camera
/// swings. The frame before f is not asked: where a movement goes on over the cut, it is at its
/// height there.
bool ShotDetector::begins_restless(std::int64_t f) const {
  constexpr float kColours = 0.1f, kOthers = 0.3f;  // histogram_difference of one scene, of two
  const std::int64_t before = f - 1 - kFrames;
  if (before < std::max<std::int64_t>(1, frames_ - kRing) || f + kFrames > frames_ ||
      scores_[slot(f)].combined < threshold_)
    return false;
  for (std::int64_t i = before + 1; i < f + kFrames; ++i)  // the first may begin a shot itself
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
