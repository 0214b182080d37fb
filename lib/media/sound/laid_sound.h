// Inside lib/media only: converts decoded sound, frame by frame, to one rate and layout, and finds
// its place in a span. Rate, format and channels may change from frame to frame. A converter that
// changes the rate keeps some samples of earlier frames; these are part of the next result, which
// begins earlier.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// Keeps one converted frame. Thread-safety: one thread at a time.
class LaidSound {
 public:
  /// Samples become interleaved floats, at `rate` a second; the span has `length` samples for each
  /// channel. Takes over `layout`, which has positions (audio_decoding.h).
  LaidSound(AVChannelLayout layout, int rate, std::int64_t length)
      : layout_(layout), rate_(rate), length_(length) {}
  ~LaidSound() { av_channel_layout_uninit(&layout_); }
  LaidSound(const LaidSound&) = delete;
  LaidSound& operator=(const LaidSound&) = delete;

  /// The samples of a frame in the span. They are valid until the next call.
  struct Part {
    std::int64_t begin = 0;  ///< place in the span, if there are samples
    const float* samples = nullptr;
    std::size_t times = 0;  ///< samples for each channel
  };
  /// Converts a frame. `at` is from decode_audio() (audio_decoding.h). Throws Error as
  /// open_converter() does.
  Part lay(const AVFrame& frame, std::optional<double> at);
  /// Returns true if the end of the span has been reached.
  bool ended() const { return position_ >= length_; }
  const AVChannelLayout& layout() const { return layout_; }
  std::int64_t length() const { return length_; }

 private:
  std::size_t drain();

  AVChannelLayout layout_;
  int rate_;
  std::int64_t length_, position_ = 0;
  SwrPtr converter_;
  int from_rate_ = 0, from_format_ = -1, from_channels_ = 0;
  std::vector<float> samples_;
};

}  // namespace vfm::media
