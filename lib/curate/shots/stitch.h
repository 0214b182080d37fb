// Rejoins shots that a cut parted although they show the same: at a flash, a jump cut, a glitch.
//
// The idea is Panda-70M's (Chen et al., CVPR 2024, section 3.1): compare the look of a shot's end
// with that of the next one's start. Without a network, colour layout, directions of edges and
// brightness must all agree; shots that merely share a mood stay apart. With a network of the
// caller's, the cosine of its vectors of the two pictures decides. Pure functions. Thread-safety:
// none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "curate/small_picture.h"

namespace vfm::curate {

/// The look of one picture: three vectors, each compared by its cosine.
struct SceneLook {
  std::array<float, 3 * 64> layout{};  ///< 8 x 8 means of Y, U, V, without the planes' means
  std::array<float, 64 * 4> edges{};   ///< 8 x 8 cells, energy of four edge directions
  std::array<float, 3> colour{};       ///< mean Y, U, V
};
SceneLook scene_look(const SmallPicture& picture);

/// 1: the same look; the least of the cosines of layout and edges, less a fifth for 16 grey levels
/// of difference in mean colour. At most 1, may be negative.
float look_similarity(const SceneLook& a, const SceneLook& b);

/// Above this two shots are joined.
inline constexpr double kStitchThreshold = 0.6;

/// Longer gaps between two shots are not bridged: half a second is not a glitch.
inline constexpr std::int64_t kLongestBridge = 12;  // frames

/// The least likeness to join two shots when the continuity of their sound is known
/// (curate/shots/sound_continuity.h). It falls by up to kSoundLowers of 1 - `threshold` if sound
/// continues (`continuity` 1), rises by up to kSoundRaises of it if sound breaks (0), and is
/// `threshold` at 0.5; linear between.
double threshold_with_sound(double threshold, double continuity);
inline constexpr double kSoundLowers = 0.2, kSoundRaises = 0.95;

/// The cosine of the vectors that a network makes of two pictures, of any length. NaN for zeros,
/// for numbers that are not finite, and for vectors of different sizes.
double vector_likeness(const std::vector<float>& a, const std::vector<float>& b);

/// The least cosine at which a network joins two shots. Panda-70M joins where unit vectors of
/// ImageBind are at most 0.6 apart: a cosine of 1 - 0.6^2 / 2. Other networks were not measured.
inline constexpr double kVectorStitchThreshold = 0.82;

}  // namespace vfm::curate
