// The signature of a video, by which duplicates are found: four small pictures a second.
//
// Each picture is the luma of a quarter of a second, stretched to a square and averaged over time
// in 32 x 32 cells. The signature therefore hardly depends on frame size, compression and frame
// rate. A cell is the exact mean of its area, even if it ends within a pixel: small and large
// copies have the same numbers. Numbers are kept to 1/256 of a grey level.
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

/// Row-major. A cell is a grey level, 0 black to 255 white, times kLevelParts.
using SignaturePicture = std::array<std::uint16_t, kSignatureCells>;
static_assert(sizeof(SignaturePicture) == 2 * kSignatureCells);
inline constexpr int kLevelParts = 256;

/// Makes the pictures from a stream of frames. Memory: one picture.
class SignatureMaker {
 public:
  /// A function that is called with each picture when the picture is complete, in order.
  using Take = std::function<void(const SignaturePicture& picture)>;
  /// Frames are displayed mirrored if `mirror`, then turned clockwise by `rotation` degrees.
  SignatureMaker(int rotation, bool mirror, Take take)
      : rotation_(rotation), mirror_(mirror), take_(std::move(take)) {}
  /// Adds a frame shown from the end of the previous frame until `end`, in seconds from the
  /// beginning of the first frame.
  void push(const LumaPlane& plane, double end);
  /// Call after the last frame. The last picture is dropped if less than half of its time is
  /// filled.
  void finish();
  /// Returns the number of complete pictures so far.
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

/// Computes the exact mean of each cell, row-major, in full range: 0 to 255.
void cell_means(const LumaPlane& plane, std::array<float, kSignatureCells>& means);

}  // namespace vfm::curate
