// Resizes and crops frames without a change of layout, between a decoder and an encoder. (Scaler
// gives RGB.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "media/frame.h"

namespace vfm::media {

/// A rectangle in whole pixels of a picture as stored.
struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

/// Returns the part of `frame` inside `r`, which must lie within the frame. The result shares the
/// planes of `frame`. Chroma stays aligned with luma if x and y are even. The result has the matrix
/// of the whole picture.
Frame crop_frame(const Frame& frame, const Rectangle& r);

/// Returns the place of `r`, in a `width` x `height` picture, after rotate_frame(degrees, mirror).
Rectangle rotate_rectangle(const Rectangle& r, int width, int height, int degrees, bool mirror);

/// Stretches frames of any size to one size: by averages to shrink, by bicubic interpolation to
/// enlarge. Results are bit-exact across threads and runs. Time, range and colour stay; the matrix
/// is set as in crop_frame(). Thread-safety: one thread at a time.
class Resizer {
 public:
  Resizer(int width, int height);
  ~Resizer();
  Resizer(Resizer&&) noexcept;
  /// Returns `frame` itself if it has that size. Throws Error for an empty frame or impossible
  /// size.
  Frame resize(const Frame& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
