// What GradualDetector says of frames far apart: whether they show one scene.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/gradual.h"
#include "curate/same_view.h"

namespace vfm::curate {

/// Whether frames i and k have the same colours, which `away` has not: where a scene moves so much,
/// or is so soft, that place says little.
bool GradualDetector::same_colours(std::int64_t i, std::int64_t k, std::int64_t away) const {
  const Tiny &first = at(i), &last = at(k);
  // Most scenes differ in this already.
  if (std::abs(first.mean[0] - last.mean[0]) > 8 ||
      std::abs(first.variance - last.variance) > 0.25f * first.variance)
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
         same_colours(i, k, away);
}

/// The frames next to it may show the same edges as both are mixtures of two shots; but then those
/// of one are stronger. So well before and after it, too, as a change can be longer than was found;
/// and still earlier: what looks like a change can be the end of an explosion.
bool GradualDetector::one_view(const GradualChange& g) const {
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
