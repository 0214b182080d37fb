// Decides whether to rejoin shots that show the same scene but were parted by a flash, jump cut or
// glitch.
//
// As in Panda-70M (Chen et al., CVPR 2024, section 3.1), the last picture of a shot is compared
// with the first of the next shot. Without a network, colour layout, edge directions and brightness
// must all agree. With the caller's network, the cosine of its vectors of the two pictures decides.
// Pure functions. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "curate/small_picture.h"

namespace vfm::curate {

/// The look of one picture: three vectors, each compared by its cosine.
struct SceneLook {
  std::array<float, 3 * 64> layout{};  ///< 8 x 8 means of Y, U, V, less the planes' means
  std::array<float, 64 * 4> edges{};   ///< 8 x 8 cells, energy of four edge directions
  std::array<float, 3> colour{};       ///< mean Y, U, V
};
SceneLook scene_look(const SmallPicture& picture);

/// Returns the lower of the cosines of layout and edges, less 0.2 for each 16 grey levels of
/// difference in mean colour. 1 means the same look; the result may be negative.
float look_similarity(const SceneLook& a, const SceneLook& b);

/// Above this look_similarity() two shots are joined.
inline constexpr double kStitchThreshold = 0.6;

/// The longest gap between two shots that can be joined.
inline constexpr std::int64_t kLongestBridge = 12;  // frames

/// Returns the least likeness to join two shots if the continuity of their sound is known
/// (curate/shots/sound_continuity.h). Continuity 1 lowers `threshold` by kSoundLowers * (1 -
/// threshold), 0 raises it by kSoundRaises * (1 - threshold), and 0.5 keeps it. Between these
/// values, the result is interpolated.
double threshold_with_sound(double threshold, double continuity);
inline constexpr double kSoundLowers = 0.2, kSoundRaises = 0.95;

/// Returns the cosine of a network's vectors of two pictures, which need not have length 1. Returns
/// NaN for zero vectors, numbers that are not finite, or different sizes.
double vector_likeness(const std::vector<float>& a, const std::vector<float>& b);

/// The least cosine of a network's vectors that joins two shots. Panda-70M joins if unit vectors of
/// ImageBind are at most 0.6 apart: cosine 1 - 0.6^2 / 2.
inline constexpr double kVectorStitchThreshold = 0.82;

}  // namespace vfm::curate
