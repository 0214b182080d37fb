// Measures transitions in which the old or the new picture moves as a whole. One picture pushes,
// covers or uncovers the other, or the old picture shrinks to a line.
//
// Lines are columns for horizontal motion and rows for vertical motion. During a transition, each
// line looks like a line of the picture before or after the transition.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

/// The rows or columns of a picture on the chroma grid. Each line has luma, u and v.
struct PictureLines {
  alignas(32) std::array<std::array<std::uint8_t, 3 * kChromaSide>, kChromaSide> line;
};
PictureLines columns_of(const SmallPicture& picture);
PictureLines rows_of(const SmallPicture& picture);

/// A kind of motion:
///   push     Both pictures move.
///   cover    The new picture slides over the old picture.
///   reveal   The old picture slides off the new picture.
///   squeeze  The old picture shrinks to a line in the middle of the new picture.
enum class Move { push, cover, reveal, squeeze };
inline constexpr int kMoves = 4;

/// The match of the lines of a frame with the lines before and after the transition.
struct MovedFit {
  int way = 0;       ///< 1 for motion right or down, -1 for left or up, 0 for squeeze.
  float share = 0;   ///< Progress of the transition, 0 to 1.
  float misfit = 1;  ///< Difference of the best fit, divided by the difference of unrelated lines.
};
/// Returns the best fit for each Move.
std::array<MovedFit, kMoves> moved_fits(const PictureLines& before, const PictureLines& now,
                                        const PictureLines& after);
/// Returns the difference of the two lines that meet in a push, divided by the difference of
/// unrelated lines. The result is small if both pictures show one view, even if up to `near` lines
/// are skipped or repeated.
float seam_of(const PictureLines& before, const PictureLines& after, int way, int near);

}  // namespace vfm::curate
