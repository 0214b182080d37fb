// Resizes and crops frames in their own layout, between a decoder and an encoder. (Scaler makes
// RGB, for viewing and training.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "media/frame.h"

namespace vfm::media {

/// Whole pixels of a picture as it is stored.
struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

/// The part of `frame` inside `r`, which lies in it: shares its planes, copies nothing. Chroma
/// stays on its luma where x and y are even. The whole picture's matrix is now stated, since
/// players guess it from the size.
Frame crop_frame(const Frame& frame, const Rectangle& r);

/// A rectangle of a picture of `width` x `height` after rotate_frame(degrees, mirror).
Rectangle rotate_rectangle(const Rectangle& r, int width, int height, int degrees, bool mirror);

/// Brings frames of any size to one size, whatever their shape. Bicubic, averaging when it shrinks;
/// bit-exact across threads and runs. Time, range and colour stay; the matrix is stated, as in
/// crop_frame(). Thread-safety: one thread at a time.
class Resizer {
 public:
  Resizer(int width, int height);
  ~Resizer();
  Resizer(Resizer&&) noexcept;
  /// `frame` itself if it has the size. Throws Error for an empty frame or an impossible size.
  Frame resize(const Frame& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
