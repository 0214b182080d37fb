// The sound of a short span of a source as samples, at one fixed rate, in two channels, for
// analysis at changes of shot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"

namespace vfm::media {

/// Thread-safety: one thread at a time. What read() returns depends on its arguments alone; spans
/// in order of time are quicker (media/sound/audio.h).
class SoundSamples {
 public:
  static constexpr int kRate = 16000, kChannels = 2;
  static constexpr double kMostSeconds = 10;

  /// Opens the source as AudioReader does. Throws Error.
  explicit SoundSamples(const std::string& path, int video = -1);
  SoundSamples(std::string_view bytes, const std::string& name, int video);
  ~SoundSamples();
  SoundSamples(SoundSamples&&) noexcept;

  struct Heard {
    std::int64_t begin = 0;      ///< of the first sample, in samples after the span's beginning
    std::vector<float> samples;  ///< left and right in turn, from -8 to 8; none: nothing is heard
  };
  /// Reads from the source's first sample in the span to the last; gaps between them are silence.
  /// One channel becomes both, and more than two as FFmpeg mixes them, without the effects'
  /// channel. The span is cut off after kMostSeconds.
  ///
  /// Nothing without exactly one stream, below 8000 samples a second, or if it does not decode.
  /// Throws Stopped, and Error of a cause that may pass.
  std::optional<Heard> read(const Span& span);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
