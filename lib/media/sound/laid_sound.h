// Inside lib/media only: converts decoded sound to one rate and layout, and finds the place of the
// sound in a span. Rate, format and channels may change between frames. If the rate changes, a
// result may begin with samples of earlier frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// A converter of decoded frames. Keeps the samples of the last converted frame. Thread-safety: one
/// thread at a time.
class LaidSound {
 public:
  /// Makes a converter to interleaved floats with `rate` samples a second. `length` is the number
  /// of samples of the span for each channel. Takes over `layout`, which must have positions
  /// (audio_decoding.h).
  LaidSound(AVChannelLayout layout, int rate, std::int64_t length)
      : layout_(layout), rate_(rate), length_(length) {}
  ~LaidSound() { av_channel_layout_uninit(&layout_); }
  LaidSound(const LaidSound&) = delete;
  LaidSound& operator=(const LaidSound&) = delete;

  /// The samples of a frame that lie in the span. They are valid until the next call of lay().
  struct Part {
    std::int64_t begin = 0;  ///< Position of the first sample in the span.
    const float* samples = nullptr;
    std::size_t times = 0;  ///< Number of samples for each channel.
  };
  /// Converts a frame. `at` is the time from decode_audio() (audio_decoding.h). Throws the Errors
  /// of open_converter().
  Part lay(const AVFrame& frame, std::optional<double> at);
  /// Returns true if the samples reach the end of the span.
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
