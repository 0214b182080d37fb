// Measures loudness as ITU-R BS.1770-4 and EBU R128 define it, with libebur128.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vfm::media {

/// Returns "libebur128 1.2.6", or "" if this build lacks libebur128 and measures no loudness.
std::string loudness_version();

/// The weight of a channel in loudness.
enum class LoudnessWeight { front, surround, none };

class LoudnessMeter {
 public:
  /// Takes the weights of up to 64 channels. `rate` is 16 to 1,000,000 samples a second.
  LoudnessMeter(const std::vector<LoudnessWeight>& channels, int rate);
  ~LoudnessMeter();
  LoudnessMeter(LoudnessMeter&&) noexcept;

  /// Adds samples of -1 to 1, interleaved: `times` for each channel.
  void add(const float* samples, std::size_t times);
  /// Returns the integrated and gated loudness in LUFS. Returns no value below the gate of -70
  /// LUFS, for less than 0.4 seconds of sound, or without libebur128.
  std::optional<double> integrated() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
