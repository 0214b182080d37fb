// Writes Y4M (YUV4MPEG2), uncompressed video that every tool reads from a pipe: `| ffplay -`, `|
// x264 -`.
// Format: the mjpegtools page yuv4mpeg(5). Samples have the limited range. Y4M cannot state the
// matrix, so the matrix is the default of players: BT.709 from 1280 wide or 577 high on, otherwise
// BT.601.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/rational.h"
#include "media/colour/scaler.h"

namespace vfm::media {

enum class Y4mChroma {
  yuv444,  ///< "C444"
  yuv420,  ///< "C420jpeg": chroma between luma samples; for tools that read nothing else
};

/// Thread-safety: one thread at a time.
class Y4mWriter {
 public:
  /// `sink` gets the bytes in order; exceptions of `sink` pass through.
  using Sink = std::function<void(std::string_view)>;
  Y4mWriter(Sink sink, int width, int height, Rational frame_rate, Y4mChroma chroma);
  ~Y4mWriter();
  Y4mWriter(Y4mWriter&&) noexcept;

  /// Throws Error for an image of another size. The first call also writes the header.
  void add(const RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
