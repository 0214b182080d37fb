// Inside lib/media only: puts decoded sound on the time line of a span, and encodes it as AAC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "media/container/mux.h"

namespace vfm::media {

/// The samples of one span, silent until frames are put. Rate and channels are the first frame's,
/// if AAC has them.
class AudioCanvas {
 public:
  /// Ignores gaps and overlaps of frames below `tolerance` seconds, as jitter of timestamps.
  AudioCanvas(const AVFrame& like, double seconds, double tolerance);
  ~AudioCanvas();

  /// Adds a frame at `at`, from decode_audio() (audio_decoding.h). A frame of another rate, format
  /// or channel layout is converted.
  void put(const AVFrame& frame, std::optional<double> at);
  /// Returns true if the end of the span has been reached.
  bool full() const { return position_ && *position_ >= length_; }
  /// Returns true if at least one sample lies in the span.
  bool heard() const { return heard_; }

  /// Returns the encoded sound. Call it once, at the end.
  std::shared_ptr<AudioTrack::Data> encode();

 private:
  void open_encoder();
  void convert(const std::uint8_t** data, int count);
  void place(const std::vector<std::vector<float>>& samples, std::int64_t count);

  int rate_ = 0;
  AVChannelLayout layout_{};
  std::int64_t length_ = 0, tolerance_ = 0;
  std::vector<std::vector<float>> samples_;  // [channel][length_]
  std::optional<std::int64_t> position_;     // where the next sample goes
  bool heard_ = false;
  CodecPtr encoder_;
  SwrPtr converter_;
  int from_rate_ = 0, from_format_ = -1;
  AVChannelLayout from_layout_{};
};

}  // namespace vfm::media
