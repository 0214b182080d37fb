// Inside lib/media only: decoded sound, frame by frame, in one rate and layout, with its place in a
// span. Frames may change their rate, format and channels from one to the next: a converter that
// changes the rate still holds samples of the frames before, which come out first and lie before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// Holds one frame. Thread-safety: one thread at a time.
class LaidSound {
 public:
  /// Samples become float, interleaved in the layout's channels, at `rate` a second. The span has
  /// `length` of these. Takes `layout` over, which has positions (audio_decoding.h).
  LaidSound(AVChannelLayout layout, int rate, std::int64_t length)
      : layout_(layout), rate_(rate), length_(length) {}
  ~LaidSound() { av_channel_layout_uninit(&layout_); }
  LaidSound(const LaidSound&) = delete;
  LaidSound& operator=(const LaidSound&) = delete;

  /// The part of the span from a frame, valid until the next call.
  struct Part {
    std::int64_t begin = 0;  ///< in the span, where there is any
    const float* samples = nullptr;
    std::size_t times = 0;  ///< samples a channel
  };
  /// `at`: from decode_audio() (audio_decoding.h). Throws Error if positioned() does, or if it
  /// cannot be converted.
  Part lay(const AVFrame& frame, std::optional<double> at);
  /// Whether the end of the span has been reached.
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
