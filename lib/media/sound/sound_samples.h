// Reads the sound of a short span of a source as stereo samples at a fixed rate, for analysis at
// changes of shot.
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

/// A reader of one source. The result of read() depends only on its arguments. Spans in rising
/// order may be read faster (media/sound/audio.h). Thread-safety: one thread at a time.
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
    std::int64_t begin = 0;      ///< Position of the first sample in the span.
    std::vector<float> samples;  ///< Interleaved left and right samples, -8 to 8; may be empty.
  };
  /// Returns the samples of the first kMostSeconds of the span. Gaps become silence. Mono sound is
  /// repeated in both channels. FFmpeg mixes more than two channels into two, without the
  /// low-frequency effects channel.
  ///
  /// Returns nullopt if the source does not have exactly one audio stream, if this stream cannot be
  /// decoded, or if its rate is below 8000 samples a second. Throws Stopped, and temporary errors
  /// (may_pass() in base/error.h).
  std::optional<Heard> read(const Span& span);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
