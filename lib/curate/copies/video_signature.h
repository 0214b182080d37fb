// A video as four small pictures a second, for finding duplicates.
//
// Each picture is the luma of a quarter of a second, averaged over its time and over 32 x 32 cells.
// So it hardly depends on frame size, compression and frame rate. The picture is stretched to a
// square. Cells are exact means of their area, also where they end within a pixel: a small copy has
// the same numbers as the large one. They are kept to 1/256 of a level: distant motion changes a
// cell's mean by less than a level, and rounding to whole levels would be noise as strong.
// Pure. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "curate/measures/luma_plane.h"

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
  /// The display of the frames: clockwise degrees, and whether they are mirrored first.
  SignatureMaker(int rotation, bool mirror, Take take)
      : rotation_(rotation), mirror_(mirror), take_(std::move(take)) {}
  /// Adds a frame shown from the end of the previous frame until `end`, in seconds after the first
  /// frame's beginning.
  void push(const LumaPlane& plane, double end);
  /// Ends after the last frame: a picture with less than half of its time is left out.
  void finish();
  /// The number of complete pictures so far.
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
