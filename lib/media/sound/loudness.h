// Measures loudness by ITU-R BS.1770-4 and EBU R128 with libebur128.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vfm::media {

/// Returns the version, such as "libebur128 1.2.6", or "" if this build has no libebur128.
std::string loudness_version();

enum class LoudnessWeight { front, surround, none };

class LoudnessMeter {
 public:
  /// Makes a meter for up to 64 channels with these weights. `rate` is 16 to 1,000,000 samples a
  /// second.
  LoudnessMeter(const std::vector<LoudnessWeight>& channels, int rate);
  ~LoudnessMeter();
  LoudnessMeter(LoudnessMeter&&) noexcept;

  /// Adds interleaved samples from -1 to 1. `times` is the number of samples for each channel.
  void add(const float* samples, std::size_t times);
  /// Returns the integrated, gated loudness in LUFS. Returns nullopt below the gate of -70 LUFS,
  /// for less than 0.4 seconds of sound, and without libebur128.
  std::optional<double> integrated() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
