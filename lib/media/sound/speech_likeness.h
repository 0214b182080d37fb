// Measures how far sound is modulated like speech, which has two to eight syllables a second.
//
// The envelope is the root mean square of each 10 ms in the telephone band, 300 to 3400 Hz. The
// spectrum of the envelope is measured in pieces of two seconds (Houtgast and Steeneken 1985).
// Speech has its maximum at 4 Hz, unlike music (Scheirer and Slaney 1997). Drums and applause with
// this rhythm give the same result as speech.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace vfm::media {

class SpeechLikeness {
 public:
  /// Makes a meter for `rate` samples a second. If `rate` is below 8000, result() returns nullopt.
  explicit SpeechLikeness(int rate);
  void add(const float* mono, std::size_t count);
  /// Returns a number from 0 to 1: the power of the envelope's modulations from 2 to 8 Hz, divided
  /// by the power from 0.5 to 25 Hz. The depth of the modulations from 2 to 8 Hz is sqrt(2 * power)
  /// / mean of the envelope. If the depth is below 1, the result is multiplied by the depth.
  /// Returns 0 for silence, and nullopt for less than a second of sound.
  std::optional<double> result();

 private:
  /// A second-order filter section (Bristow-Johnson).
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
  double power_ = 0, phase_ = 0;
  std::size_t in_value_ = 0;
  std::vector<double> envelope_;
  double syllables_ = 0, all_ = 0, mean_squared_ = 0;
  bool known_ = false;
};

}  // namespace vfm::media
