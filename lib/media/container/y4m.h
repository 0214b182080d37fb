// Y4M (YUV4MPEG2), uncompressed video that every tool reads from a pipe: `| ffplay -`, `| x264 -`.
// Format: the mjpegtools page yuv4mpeg(5). Limited range; the matrix, which Y4M cannot state, is
// the players' default: BT.601; BT.709 from 1280 wide or 577 high on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/rational.h"
#include "media/colour/scaler.h"

namespace vfm::media {

enum class Y4mChroma {
  yuv444,  ///< "C444": all the colour there is
  yuv420,  ///< "C420jpeg": chroma between the luma samples; for tools that read nothing else
};

/// Thread-safety: one thread at a time.
class Y4mWriter {
 public:
  /// `sink` takes bytes in order; its exceptions pass through.
  using Sink = std::function<void(std::string_view)>;
  Y4mWriter(Sink sink, int width, int height, Rational frame_rate, Y4mChroma chroma);
  ~Y4mWriter();
  Y4mWriter(Y4mWriter&&) noexcept;

  /// Throws Error for an image of another size. The header goes out with the first one.
  void add(const RgbImage& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
