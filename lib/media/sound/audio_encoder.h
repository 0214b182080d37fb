// Inside lib/media only: decoded sound laid on the time line of a span, and encoded as AAC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "media/container/mux.h"

namespace vfm::media {

/// The samples of one span, silent where nothing is put. Its rate and channels are those of the
/// first frame as far as AAC has them.
class AudioCanvas {
 public:
  /// A gap or overlap between frames below `tolerance` seconds is jitter of timestamps: ignored.
  AudioCanvas(const AVFrame& like, double seconds, double tolerance);
  ~AudioCanvas();

  /// `at`: seconds after the beginning of the span, may be negative; nothing: right after the frame
  /// before. A frame of another rate, format or channel layout is converted.
  void put(const AVFrame& frame, std::optional<double> at);
  /// The end of the span has been reached.
  bool full() const { return position_ && *position_ >= length_; }
  /// At least one sample lies in the span.
  bool heard() const { return heard_; }

  /// Once, at the end.
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
