// Reads the sound of a short span of a source as samples, at a fixed rate, in two channels, for
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

/// Thread-safety: one thread at a time. The result of read() depends on its arguments alone; spans
/// in order of time may be quicker (media/sound/audio.h).
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
    std::vector<float> samples;  ///< interleaved left and right, -8 to 8; empty if nothing is heard
  };
  /// Reads the source's samples in the span; gaps between them become silence. Mono sound is
  /// repeated in both channels; FFmpeg mixes more than two channels into two, without the
  /// low-frequency effects channel. The span is cut off after kMostSeconds.
  ///
  /// Returns no value unless the source has exactly one audio stream, which decodes and has at
  /// least 8000 samples a second. Throws Stopped, and Errors whose cause may_pass() (base/error.h).
  std::optional<Heard> read(const Span& span);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
