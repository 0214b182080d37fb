// Writes Y4M (YUV4MPEG2), uncompressed video that many tools, such as `ffplay -`, read from a pipe.
// Format: the mjpegtools page yuv4mpeg(5). Samples have the limited range. The matrix is BT.709 for
// pictures that are at least 1280 wide or 577 high, otherwise BT.601.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/rational.h"
#include "media/colour/scaler.h"

namespace vfm::media {

enum class Y4mChroma {
  yuv444,  ///< Tag "C444".
  yuv420,  ///< Tag "C420jpeg", with chroma between luma samples.
};

/// Thread-safety: one thread at a time.
class Y4mWriter {
 public:
  /// Calls `sink` with the bytes in order.
  using Sink = std::function<void(std::string_view)>;
  Y4mWriter(Sink sink, int width, int height, Rational frame_rate, Y4mChroma chroma);
  ~Y4mWriter();
  Y4mWriter(Y4mWriter&&) noexcept;

  /// Writes an image. The first call also writes the header. Throws Error for an image of another
  /// size.
  void add(const RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
