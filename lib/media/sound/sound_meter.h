// Measures the sound of a span of a source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/rational.h"

namespace vfm::media {

struct SoundMeasures {
  std::optional<double> loudness;  ///< Loudness in LUFS (media/sound/loudness.h).
  /// The share of silent pieces, if the span is divided into pieces of 50 ms. A piece is silent if
  /// it has no sound, or if the root mean square of every channel is below -60 dB of full scale.
  double silence = 1;
  std::optional<double> speech;  ///< Result of SpeechLikeness, 0 to 1.
};

/// A meter for one source. Thread-safety: one thread at a time.
class SoundMeter {
 public:
  /// Opens the source as AudioReader does. Throws Error.
  explicit SoundMeter(const std::string& path, int video = -1);
  SoundMeter(std::string_view bytes, const std::string& name, int video);
  ~SoundMeter();
  SoundMeter(SoundMeter&&) noexcept;

  /// Returns the measures of a span, or nullopt if no sound can be decoded. Throws Stopped, and
  /// temporary errors (may_pass() in base/error.h).
  std::optional<SoundMeasures> measure(const Span& span);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
