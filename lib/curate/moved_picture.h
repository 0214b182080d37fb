// Transitions in which a whole picture moves: it pushes the other out, comes over it, goes off it,
// or is squeezed until nothing is left of it.
//
// Lines of a frame in the midst (columns, if things move to the side) each look like one of the
// lines of the picture before or of the one after, and which one follows from how far it has come.
// A camera that pans by just one picture does that too; but there what meets is continuous: the
// seam says so. Pure functions. Thread-safety: none needed.
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

/// How well the lines of `now` follow from those before and after.
struct MovedFit {
  int way = 0;       ///< 1 to higher lines (right, down), -1 to lower ones; 0 of a squeeze
  float share = 0;   ///< of the way that has been gone
  float misfit = 1;  ///< what is left, by what lines that have nothing in common differ
};
/// For each Move the share, and way, that fits best.
std::array<MovedFit, kMoves> moved_fits(const PictureLines& before, const PictureLines& now,
                                        const PictureLines& after);
/// How much the lines that meet in a push differ, by what lines that have nothing in common do: 1;
/// or by thrice what neighbouring ones do, if that is more. Of one view it is little, also where up
/// to `near` lines are skipped or shown twice.
float seam_of(const PictureLines& before, const PictureLines& after, int way, int near);

}  // namespace vfm::curate
