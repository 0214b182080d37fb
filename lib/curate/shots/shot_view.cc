// How ShotDetector decides whether a frame that looks like a cut still shows the view before it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "curate/shots/same_view.h"
#include "curate/shots/shot_detector.h"

namespace vfm::curate {

/// Whether frame f shows the edges of the one before it: in another light, with something on top,
/// or from a camera that swings. Of one that swings farther in a frame than motion is looked for,
/// the frames around move as well; else the view has changed at once.
bool ShotDetector::one_view(std::int64_t f) const {
  constexpr int kFar = 8;  // cells
  const FrameFeatures &before = ring_[slot(f - 1)], &here = ring_[slot(f)];
  const ActiveArea area = join(before.area, here.area);
  if (differ_in_box(before.picture, here.picture, area)) return true;
  const SharedEdges edges = shared_edges(before.picture, here.picture, area);
  if (!edges.most()) return false;
  if (std::max(std::abs(edges.right), std::abs(edges.down)) <= kFar) return true;
  const float least = 0.25f * scores_[slot(f)].difference;
  return f > 1 && f + 1 < frames_ && scores_[slot(f - 1)].difference > least &&
         scores_[slot(f + 1)].difference > least;
}

/// Whether the camera swings so fast that the picture at f seems another: one shift of the whole
/// explains it, and about the same shift explains the frame before or after, as a camera has
/// weight.
bool ShotDetector::swings(std::int64_t f) const {
  constexpr float kLeftOver = 0.3f;  // of made swings at most 0.22
  constexpr int kFar = 6;            // cells: less is found by motion
  const auto shift = [&](std::int64_t i) {
    return whole_shift(ring_[slot(i - 1)].picture, ring_[slot(i)].picture);
  };
  const float least = 0.1f * scores_[slot(f)].difference;
  std::optional<WholeShift> here;
  for (const std::int64_t i : {f - 1, f + 1}) {
    if (i < 1 || i >= frames_ || scores_[slot(i)].difference < least) continue;
    if (!here) here = shift(f);
    if (here->left_over > kLeftOver || std::max(std::abs(here->right), std::abs(here->down)) < kFar)
      return false;
    const WholeShift next = shift(i);
    if (next.left_over <= kLeftOver &&
        2 * std::hypot(next.right - here->right, next.down - here->down) <=
            std::hypot(here->right, here->down))
      return true;
  }
  return false;
}

/// Whether frames [begin, end), behind which the scene before them goes on, are a shot though they
/// are few: another picture, with something to see, that hardly changes. What flies past, flashes
/// or explodes does.
bool ShotDetector::is_short_shot(std::int64_t begin, std::int64_t end) const {
  constexpr int kShortest = 5;
  constexpr float kStill = 0.2f, kSeen = 12;
  if (end - begin < kShortest || end >= frames_) return false;
  for (std::int64_t i = begin; i < end; ++i)
    if (ring_[slot(i)].deviation < kSeen || (i > begin && scores_[slot(i)].combined > kStill))
      return false;
  return true;
}

}  // namespace vfm::curate
