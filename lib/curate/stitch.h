// Rejoining shots that a cut parted although they show the same: a flash, a jump cut, a glitch.
//
// The idea is Panda-70M's (Chen et al., CVPR 2024, section 3.1): compare the look of a shot's end
// with that of the next one's start. Here without a network: what is where (colour layout), which
// way edges run, and how bright it is must all agree. Strict: shots that merely share a mood stay
// apart. Or with one, which is the caller's: by the cosine of the vectors that it makes of the two
// pictures. Pure functions. Thread-safety: none needed.
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

/// Longer gaps between two shots are not bridged: what was away for half a second was no glitch.
inline constexpr std::int64_t kLongestBridge = 12;  // frames

/// The likeness from which two shots are joined when something is known of the sound that meets
/// there (curate/sound_continuity.h). Of what is left from `threshold` to 1 it goes down by up to
/// kSoundLowers where the sound goes on (`continuity` 1), up by up to kSoundRaises where it breaks
/// (0), and stays at 0.5; in proportion between.
double threshold_with_sound(double threshold, double continuity);
inline constexpr double kSoundLowers = 0.2, kSoundRaises = 0.95;

/// The cosine of the vectors that a network makes of two pictures, of any length. NaN where there
/// is none: of zeros, of numbers that are not finite, of vectors of different sizes.
double vector_likeness(const std::vector<float>& a, const std::vector<float>& b);

/// From this on two shots are joined by a network. Panda-70M joins where the vectors of ImageBind,
/// which have length 1, are at most 0.6 apart, and a cosine is 1 - 0.6^2 / 2 then. What other
/// networks need was not measured here.
inline constexpr double kVectorStitchThreshold = 0.82;

}  // namespace vfm::curate
