// How GradualDetector decides whether frames far apart show one scene.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/shots/gradual.h"
#include "curate/shots/same_view.h"

namespace vfm::curate {
namespace {

constexpr int kFarEdges = 8;  // largest motion of a view, in luma cells, while something hides it

}  // namespace

/// Returns true if one step between a and b stands out from the others by a quarter of the whole
/// change. A gradual change has no such step. A flash, an explosion or a title begins with one,
/// which may lie between the frames that other tests compare.
bool GradualDetector::leaps(std::int64_t a, std::int64_t b) const {
  constexpr std::int64_t kShort = 4;  // frames; in a shorter change each step is large
  constexpr float kLeap = 0.25f;
  if (b - a <= kShort) return false;
  const auto apart = [&](std::int64_t i, std::int64_t k) {
    const CoarsePicture &p = at(i).coarse, &q = at(k).coarse;
    int sum = 0;
    for (std::size_t c = 0; c < p.size(); ++c)
      sum += (c < 256 ? 1 : 2) * std::abs(int{p[c]} - int{q[c]});
    return static_cast<float>(sum);
  };
  std::vector<float> steps;
  for (std::int64_t i = a + 1; i <= b; ++i)
    steps.push_back(apart(i - 1, i));
  std::sort(steps.begin(), steps.end());
  return steps.back() - steps[steps.size() / 2] > kLeap * apart(a, b);
}

/// Excludes black, because films separate even the shortest shots by black.
bool GradualDetector::same_ground(std::int64_t i, std::int64_t k) const {
  constexpr float kSame = 16;
  if (std::min(i, k) < std::max<std::int64_t>(0, frames_ - kRing)) return false;
  const Tiny &first = at(i), &last = at(k);
  if (!first.uniform || !last.uniform || first.mean[0] < kBlack) return false;
  for (std::size_t p = 0; p < first.mean.size(); ++p)
    if (std::abs(first.mean[p] - last.mean[p]) > kSame) return false;
  return true;
}

/// Returns true if frames i and k have the same colours, and `away` has other colours. This is for
/// scenes that move so much, or are so blurred, that cells cannot be compared.
bool GradualDetector::same_colours(std::int64_t i, std::int64_t k, std::int64_t away) const {
  const Tiny &first = at(i), &last = at(k);
  // This fast test already separates most scenes.
  if (std::abs(first.mean[0] - last.mean[0]) > 16 || std::abs(first.mean[1] - last.mean[1]) > 8 ||
      std::abs(first.mean[2] - last.mean[2]) > 8 ||
      std::abs(first.variance - last.variance) > 0.5f * first.variance)
    return false;
  FrameFeatures a, b;
  a.picture = first.picture, b.picture = last.picture;
  complete_features(a), complete_features(b);
  if (histogram_difference(a, b) > kSameColours) return false;
  b.picture = at(away).picture;
  complete_features(b);
  return histogram_difference(a, b) > kOtherColours;
}

bool GradualDetector::same_scene(std::int64_t i, std::int64_t k, std::int64_t away) const {
  const auto [first, last] = std::minmax({i, k, away});
  if (first < std::max<std::int64_t>(0, frames_ - kRing) || last >= frames_) return false;
  return (correlation(at(i), at(k)) > 0.65f &&
          change(at(i), at(k)) < 0.5f * change(at(i), at(away))) ||
         (same_ground(i, k) && !same_ground(i, away)) || same_colours(i, k, away);
}

bool GradualDetector::one_view(std::int64_t i, std::int64_t k) const {
  constexpr float kFaintlyLike = 0.2f;  // most pictures of two scenes correlate less
  if (i < std::max<std::int64_t>(0, frames_ - kRing) || k >= frames_ ||
      correlation(at(i), at(k)) < kFaintlyLike)
    return false;
  const SmallPicture &a = at(i).picture, &b = at(k).picture;
  const SharedEdges e = shared_edges(a, b, join(active_area(a), active_area(b)));
  return e.most() && std::max(std::abs(e.right), std::abs(e.down)) <= kFarEdges &&
         std::abs(std::log(e.strength)) < std::log(2.f);
}

/// Returns true if a frame near the middle has the colours of both ends, as in a scene that turns
/// or moves. A mixture has other colours or less contrast. Excludes dark pictures, which all have
/// about the same colours, and wipes, whose frames have the colours of both ends.
bool GradualDetector::keeps_colours(const GradualChange& g) const {
  constexpr float kDark = 32, kColours = 0.1f, kContrast = 0.8f;
  if (g.wipe || g.transition || std::min(at(g.end - 1).mean[0], at(g.begin).mean[0]) < kDark)
    return false;
  FrameFeatures before, now, after;
  const auto complete = [&](std::int64_t i, FrameFeatures& out) {
    out.picture = at(i).picture;
    complete_features(out);
  };
  complete(g.end - 1, before), complete(g.begin, after);
  if (histogram_difference(before, after) > kColours) return false;
  const std::int64_t away = (g.begin - g.end + 1) * 2 / 5;
  for (std::int64_t i = g.end - 1 + away; i <= g.begin - away; ++i) {
    if (at(i).variance < kContrast * (at(g.end - 1).variance + at(g.begin).variance) / 2) continue;
    complete(i, now);
    if (histogram_difference(before, now) < kColours && histogram_difference(now, after) < kColours)
      return true;
  }
  return false;
}

/// If the frames next to the change are mixtures of two shots, they share edges, but with different
/// strength. Frames farther away are also compared, because a change can be longer than was found,
/// or can be the end of an explosion.
bool GradualDetector::one_view(const GradualChange& g) const {
  if (keeps_colours(g)) return true;
  const auto shared = [&](std::int64_t i, std::int64_t k) {
    if (i < std::max<std::int64_t>(0, frames_ - kRing)) return SharedEdges{};
    const SmallPicture &a = at(i).picture, &b = at(std::min(k, frames_ - 1)).picture;
    return shared_edges(a, b, join(active_area(a), active_area(b)));
  };
  const SharedEdges next = shared(g.end - 1, g.begin);
  if (next.most() && std::abs(std::log(next.strength)) < std::log(1.5f)) return true;
  const std::int64_t away = 2 + (g.begin - g.end) / 2;
  for (int earlier = 0; earlier <= 8; earlier += 4)
    if (shared(g.end - 1 - away - earlier, g.begin + away).most()) return true;
  return false;
}

}  // namespace vfm::curate
