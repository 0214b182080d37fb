// Inside lib/media only: places decoded sound in a span, and encodes it as AAC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "media/container/mux.h"

namespace vfm::media {

/// The samples of a span, silent at first. The first frame sets rate and channels, if AAC supports
/// them.
class AudioCanvas {
 public:
  /// Makes a silent span of `seconds` with the format of `like`. Gaps and overlaps between frames
  /// are ignored if they are shorter than `tolerance` seconds.
  AudioCanvas(const AVFrame& like, double seconds, double tolerance);
  ~AudioCanvas();

  /// Adds a frame at the time `at` from decode_audio() (audio_decoding.h). Converts the frame if
  /// its rate, format or channel layout is not that of the span.
  void put(const AVFrame& frame, std::optional<double> at);
  /// Returns true if the samples reach the end of the span.
  bool full() const { return position_ && *position_ >= length_; }
  /// Returns true if at least one sample lies in the span.
  bool heard() const { return heard_; }

  /// Returns the encoded sound. Must be called once, at the end.
  std::shared_ptr<AudioTrack::Data> encode();

 private:
  void open_encoder();
  void convert(const std::uint8_t** data, int count);
  void place(const std::vector<std::vector<float>>& samples, std::int64_t count);

  int rate_ = 0;
  AVChannelLayout layout_{};
  std::int64_t length_ = 0, tolerance_ = 0;
  std::vector<std::vector<float>> samples_;  // [channel][length_]
  std::optional<std::int64_t> position_;
  bool heard_ = false;
  CodecPtr encoder_;
  SwrPtr converter_;
  int from_rate_ = 0, from_format_ = -1;
  AVChannelLayout from_layout_{};
};

}  // namespace vfm::media
