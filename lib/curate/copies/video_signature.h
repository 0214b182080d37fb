// Computes the signature of a video for finding duplicates: four small pictures per second.
//
// A picture is the mean luma of a quarter of a second, stretched to 32 x 32 cells. The signature
// hardly depends on frame size, compression and frame rate. A cell is the exact mean of its area,
// even if the area ends within a pixel. The mean is rounded to 1/256 of a grey level.
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
inline constexpr int kSignatureRate = 4;  ///< Pictures per second.

/// A row-major picture. A cell is a grey level, 0 (black) to 255 (white), multiplied by
/// kLevelParts.
using SignaturePicture = std::array<std::uint16_t, kSignatureCells>;
static_assert(sizeof(SignaturePicture) == 2 * kSignatureCells);
inline constexpr int kLevelParts = 256;

/// Makes the pictures of a signature from a stream of frames. Memory is constant: one picture.
class SignatureMaker {
 public:
  /// A function that receives each picture when the picture is complete, in order.
  using Take = std::function<void(const SignaturePicture& picture)>;
  /// Pictures are mirrored if `mirror` is true, and then turned clockwise by `rotation` degrees.
  SignatureMaker(int rotation, bool mirror, Take take)
      : rotation_(rotation), mirror_(mirror), take_(std::move(take)) {}
  /// Adds a frame that is shown until `end`, in seconds from the beginning of the first frame.
  void push(const LumaPlane& plane, double end);
  /// Ends the signature. Drops the last picture if less than half of its time is filled.
  void finish();
  /// Returns the number of complete pictures.
  std::size_t count() const { return count_; }

 private:
  void end_picture();

  int rotation_;
  bool mirror_;
  Take take_;
  double shown_until_ = 0;  ///< Time in seconds at which the last frame ends.
  double filled_ = 0;       ///< Filled seconds of the unfinished picture.
  std::array<float, kSignatureCells> sum_{};
  std::size_t count_ = 0;
};

/// Computes the exact mean of each cell, row-major, in full range: 0 to 255.
void cell_means(const LumaPlane& plane, std::array<float, kSignatureCells>& means);

}  // namespace vfm::curate
