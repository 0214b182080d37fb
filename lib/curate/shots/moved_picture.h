// Transitions in which a whole picture moves: it pushes the other out, covers it, uncovers it, or
// shrinks to nothing.
//
// Each line of a frame in between (columns, for motion to the side) looks like a line of the
// picture before or after; the progress tells which. A camera that pans by exactly one picture does
// that too, but then the picture is continuous at the seam. Pure functions. Thread-safety: none
// needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

/// Lines of a picture on the chroma grid, each with its luma, u and v.
struct PictureLines {
  alignas(32) std::array<std::array<std::uint8_t, 3 * kChromaSide>, kChromaSide> line;
};
PictureLines columns_of(const SmallPicture& picture);
PictureLines rows_of(const SmallPicture& picture);

/// push: both move; cover: the new one comes over the old one; reveal: the old one goes off the new
/// one; squeeze: the old one shrinks to a line in the middle, and around it is the new one.
enum class Move { push, cover, reveal, squeeze };
inline constexpr int kMoves = 4;

/// The fit of the lines of `now` to those before and after.
struct MovedFit {
  int way = 0;       ///< 1 to higher lines (right, down), -1 to lower ones; 0 of a squeeze
  float share = 0;   ///< of the way already done
  float misfit = 1;  ///< remaining difference, relative to unrelated lines
};
/// For each Move the share, and way, that fits best.
std::array<MovedFit, kMoves> moved_fits(const PictureLines& before, const PictureLines& now,
                                        const PictureLines& after);
/// The difference of the lines that meet in a push, relative to that of unrelated lines, or to
/// thrice that of neighbouring lines, if that is more. It is small within one view, also if up to
/// `near` lines are skipped or repeated.
float seam_of(const PictureLines& before, const PictureLines& after, int way, int near);

}  // namespace vfm::curate
