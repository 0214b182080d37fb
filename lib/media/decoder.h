// Decoding a video file: the right stream, every frame, in presentation order, with exact time.
//
// Not here: what to do with frames (curate/), which spans to cut (tools, curate/).
// Thread-safety: one thread at a time; different decoders are independent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rational.h"
#include "media/frame.h"

namespace vfm::media {

/// What the container and codec say of the chosen stream.
struct StreamInfo {
  int stream = -1;              ///< index in the container
  std::string codec;            ///< FFmpeg's name: "h264"
  std::string pixel_format;     ///< FFmpeg's name: "yuv420p10le"
  int width = 0, height = 0;    ///< coded
  Rational sample_aspect{1, 1};
  int rotation = 0;             ///< clockwise degrees to show it upright: 0, 90, 180, 270
  int display_width = 0, display_height = 0;  ///< after rotation and sample aspect, rounded
  Rational time_base;
  Rational frame_rate;          ///< average; 0/1 if unknown
  double duration = 0;          ///< seconds by the container; 0 if unknown
  std::int64_t frames = 0;      ///< by the container; 0 if unknown
  bool image = false;           ///< a still picture file
  bool has_audio = false;
  std::string audio_codec;
};

struct DecodeOptions {
  int stream = -1;   ///< container index; -1: the one a player would choose (never cover art)
  int threads = 1;   ///< decoder threads; the frames do not depend on it
  bool keyframes_only = false;
  /// Decoders may drop to this for scaled-down analysis; never changes frame count or timing.
  bool skip_loop_filter = false;
};

class Decoder {
 public:
  /// Opens a path or URL. Throws Error: "cannot open 'x': ...", "'x' has no video stream (only audio)",
  /// "'x' is empty", ...
  explicit Decoder(const std::string& path, const DecodeOptions& options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;

  const StreamInfo& info() const;
  /// The next frame in presentation order; false at the end. A corrupt packet is skipped and counted,
  /// decoding goes on after it; throws Error only when nothing can be decoded any more.
  bool next(Frame& frame);
  /// Next frame returned is the first with pts >= `pts` (decodes from the key frame before it).
  void seek(std::int64_t pts);
  /// Packets or frames that could not be decoded so far.
  std::int64_t corrupt() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A copy of `frame`'s data in an owner of its own: what to keep when a decoder's buffers are scarce.
Frame copy_frame(const Frame& frame);

}  // namespace vfm::media
