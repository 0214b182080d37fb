// A video as four small pictures a second: what duplicates are told by.
//
// Each picture is the luma of a quarter of a second, averaged over its time and over 32 x 32 cells.
// So it hardly depends on the size of the frames, how they were compressed, and how many there are
// a second. The picture is stretched to a square whatever its shape. Cells are exact means of their
// area, also where they end within a pixel: a small copy has the same numbers as the large one.
// They are kept to 1/256 of a level: what moves far away changes the mean of a cell by less than
// one, and rounding to whole levels would be noise as strong as that.
// Pure. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "curate/luma_plane.h"

namespace vfm::curate {

inline constexpr int kSignatureSide = 32;
inline constexpr std::size_t kSignatureCells = 32 * 32;
inline constexpr int kSignatureRate = 4;  ///< pictures a second

/// Row-major, 0 black to 255 white, in parts of a level.
using SignaturePicture = std::array<std::uint16_t, kSignatureCells>;
static_assert(sizeof(SignaturePicture) == 2 * kSignatureCells);
inline constexpr int kLevelParts = 256;

/// Makes the pictures while a video's frames go by. Holds one.
class SignatureMaker {
 public:
  /// Called with each picture when it is complete, in order.
  using Take = std::function<void(const SignaturePicture& picture)>;
  /// How the frames are to be shown: clockwise degrees, and whether they are mirrored before.
  SignatureMaker(int rotation, bool mirror, Take take)
      : rotation_(rotation), mirror_(mirror), take_(std::move(take)) {}
  /// A frame that is shown until `end`, in seconds after the first frame's beginning. It begins
  /// where the one before ended.
  void push(const LumaPlane& plane, double end);
  /// After the last frame: a quarter of a second that has less than half its time is left out.
  void finish();
  /// Complete ones until now.
  std::size_t count() const { return count_; }

 private:
  void end_picture();

  int rotation_;
  bool mirror_;
  Take take_;
  double shown_until_ = 0;  ///< seconds
  double filled_ = 0;       ///< of the picture that is being made, in seconds
  std::array<float, kSignatureCells> sum_{};
  std::size_t count_ = 0;
};

/// The exact mean of each cell, row-major, in full range: 0 to 255.
void cell_means(const LumaPlane& plane, std::array<float, kSignatureCells>& means);

}  // namespace vfm::curate
