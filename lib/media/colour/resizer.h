// Resizes and crops frames without a change of pixel layout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "media/frame.h"

namespace vfm::media {

/// A rectangle in whole pixels of a stored picture.
struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

/// Returns the part of `frame` inside `r`, which must lie within the frame. The result shares the
/// planes of `frame`, and has the matrix of the whole picture (resolve_matrix()). Chroma stays
/// aligned with luma if x and y are even.
Frame crop_frame(const Frame& frame, const Rectangle& r);

/// Returns the rectangle that shows the content of `r` after rotate_frame(degrees, mirror). The
/// picture before rotation has `width` x `height` pixels.
Rectangle rotate_rectangle(const Rectangle& r, int width, int height, int degrees, bool mirror);

/// A converter of frames to one size. Shrinks by area averages, and enlarges by bicubic
/// interpolation. Results have the same bits in every thread and run. Time, range and colours do
/// not change. The result has the matrix of the original picture (resolve_matrix()). Thread-safety:
/// one thread at a time.
class Resizer {
 public:
  Resizer(int width, int height);
  ~Resizer();
  Resizer(Resizer&&) noexcept;
  /// Returns the resized frame, or `frame` itself if its size is right. Throws Error for an empty
  /// frame or an impossible size.
  Frame resize(const Frame& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
