// Measures the sound of a span of a source. Sound is read separately from pictures, decoded once
// for each span, and not kept in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/rational.h"

namespace vfm::media {

struct SoundMeasures {
  std::optional<double> loudness;  ///< LUFS (media/sound/loudness.h)
  /// The share of the span's 50 ms pieces without sound, or with a root mean square below -60 dB of
  /// full scale in all channels.
  double silence = 1;
  std::optional<double> speech;  ///< media/sound/speech_likeness.h
};

/// Thread-safety: one thread at a time.
class SoundMeter {
 public:
  /// Opens the source as AudioReader does. Throws Error.
  explicit SoundMeter(const std::string& path, int video = -1);
  SoundMeter(std::string_view bytes, const std::string& name, int video);
  ~SoundMeter();
  SoundMeter(SoundMeter&&) noexcept;

  /// Measures the sound. Returns no value if no sound decodes. Throws Stopped, and Errors whose
  /// cause may_pass() (base/error.h).
  std::optional<SoundMeasures> measure(const Span& span);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
