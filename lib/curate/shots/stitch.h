// Decides whether to join two shots of the same scene that a flash, jump cut or glitch separates.
//
// The last picture of a shot is compared with the first picture of the next shot, as in Panda-70M
// (Chen et al., CVPR 2024, section 3.1). If the caller has a network, the cosine of the network's
// vectors decides. Without a network, the layout of colours, the directions of edges and the
// brightness must agree.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "curate/small_picture.h"

namespace vfm::curate {

struct SceneLook {
  std::array<float, 3 * 64> layout{};  ///< 8 x 8 means of Y, U and V, minus each plane's mean.
  std::array<float, 64 * 4> edges{};   ///< Energy of four edge directions in 8 x 8 cells.
  std::array<float, 3> colour{};       ///< Means of Y, U and V.
};
SceneLook scene_look(const SmallPicture& picture);

/// Returns the smaller of two cosines (of the layouts, and of the edges), minus 0.2 for each 16
/// grey levels between the mean colours. The same look gives 1. The result may be negative.
float look_similarity(const SceneLook& a, const SceneLook& b);

/// The look_similarity() above which two shots are joined.
inline constexpr double kStitchThreshold = 0.6;

/// The longest gap in frames between two shots that can be joined.
inline constexpr std::int64_t kLongestBridge = 12;

/// Returns the threshold of likeness for two shots whose sound has a known `continuity`
/// (curate/shots/sound_continuity.h). Continuity 1 lowers `threshold` by kSoundLowers * (1 -
/// threshold). Continuity 0 raises `threshold` by kSoundRaises * (1 - threshold). Continuity 0.5
/// does not change `threshold`. Other values are interpolated.
double threshold_with_sound(double threshold, double continuity);
inline constexpr double kSoundLowers = 0.2, kSoundRaises = 0.95;

/// Returns the cosine of two vectors. Returns NaN if a vector is zero, if a number is infinite or
/// NaN, or if the sizes differ.
double vector_likeness(const std::vector<float>& a, const std::vector<float>& b);

/// Two shots are joined if the cosine of a network's vectors is at least this threshold. Panda-70M
/// joins unit vectors of ImageBind at a distance up to 0.6, which is a cosine of 1 - 0.6^2 / 2.
inline constexpr double kVectorStitchThreshold = 0.82;

}  // namespace vfm::curate
