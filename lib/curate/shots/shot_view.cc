// How ShotDetector decides whether a frame that looks like a cut still shows the view before it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "curate/shots/same_view.h"
#include "curate/shots/shot_detector.h"

namespace vfm::curate {

/// Returns true if frame f shows the edges of the previous frame: in another light, with something
/// on top, or from a camera that swings. If edges move farther than motion vectors reach, the
/// frames around f must move, too.
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

/// Returns true if the camera swings so fast that frame f seems to be another picture. One shift of
/// the whole explains f, and a similar shift explains the frame before or after, as a camera does
/// not stop at once.
bool ShotDetector::swings(std::int64_t f) const {
  constexpr float kLeftOver = 0.3f;  // generated swings leave at most 0.22
  constexpr int kFar = 6;            // cells; motion vectors find shorter shifts
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

/// Returns true if the few frames [begin, end) within a scene are a shot of their own: a picture
/// with detail that hardly changes. Flashes, explosions and passing things change.
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
