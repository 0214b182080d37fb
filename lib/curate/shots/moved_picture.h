// Measures transitions in which a whole picture moves: it pushes out, covers or uncovers the other
// picture, or shrinks to nothing.
//
// Lines are rows, or columns for motion to the side. During the transition each line looks like a
// line of the picture before or after; the progress determines which. A pan by exactly one picture
// looks the same, but is continuous at the seam. Pure functions. Thread-safety: none needed.
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

/// push: both pictures move; cover: the new picture slides over the old; reveal: the old picture
/// slides off the new; squeeze: the old picture shrinks to a line in the middle of the new.
enum class Move { push, cover, reveal, squeeze };
inline constexpr int kMoves = 4;

/// How well lines of `now` match lines of `before` and `after`.
struct MovedFit {
  int way = 0;       ///< 1: to higher lines (right, down); -1: to lower lines; 0: squeeze
  float share = 0;   ///< progress, 0 to 1
  float misfit = 1;  ///< remaining difference, relative to unrelated lines
};
/// Returns, for each Move, the best share and way.
std::array<MovedFit, kMoves> moved_fits(const PictureLines& before, const PictureLines& now,
                                        const PictureLines& after);
/// Returns the difference of the lines that meet in a push, relative to the difference of unrelated
/// lines, or, if larger, to three times the difference of neighbouring lines. The result is small
/// within one view, even if up to `near` lines are skipped or repeated.
float seam_of(const PictureLines& before, const PictureLines& after, int way, int near);

}  // namespace vfm::curate
