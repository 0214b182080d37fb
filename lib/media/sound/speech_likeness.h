// Measures how far sound is modulated like speech, which has two to eight syllables a second.
//
// The envelope is the root mean square of each 10 ms in the telephone band, 300 to 3400 Hz. Each
// two seconds of the envelope are split by frequency, as in the modulation spectrum of Houtgast and
// Steeneken (1985). Speech peaks at 4 Hz, unlike music (Scheirer and Slaney 1997). Drums and
// applause with this rhythm give the result of speech.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace vfm::media {

class SpeechLikeness {
 public:
  /// `rate` is in samples a second; below 8000 there is never a result.
  explicit SpeechLikeness(int rate);
  void add(const float* mono, std::size_t count);
  /// Returns 0 to 1: the share of 2 to 8 Hz in the envelope's modulations from 0.5 to 25 Hz, times
  /// the depth of 2 to 8 Hz if the depth is below 1. The depth is the root of twice the power,
  /// divided by the mean envelope. Returns 0 for silence, and no value for less than a second of
  /// sound.
  std::optional<double> result();

 private:
  /// A second-order filter section, as in Bristow-Johnson's cookbook.
  struct Section {
    double b0 = 1, b1 = 0, b2 = 0, a1 = 0, a2 = 0, s1 = 0, s2 = 0;
    double next(double x) {
      const double y = b0 * x + s1;
      s1 = b1 * x - a1 * y + s2;
      s2 = b2 * x - a2 * y;
      return y;
    }
  };
  static Section pass(double frequency, double rate, bool high);
  void end_piece();

  double samples_per_value_;
  bool usable_;
  std::array<Section, 2> band_;
  double power_ = 0, phase_ = 0;  // of the unfinished value
  std::size_t in_value_ = 0;
  std::vector<double> envelope_;  // of the unfinished piece
  double syllables_ = 0, all_ = 0, mean_squared_ = 0;
  bool known_ = false;
};

}  // namespace vfm::media
