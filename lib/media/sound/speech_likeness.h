// Measures how far sound is modulated like speech, with two to eight syllables a second.
//
// The envelope (root mean square of 10 ms, of the telephone's band, 300 to 3400 Hz) of each two
// seconds is split by frequency, as in the modulation spectrum of Houtgast and Steeneken (1985).
// Speech peaks at 4 Hz, by which Scheirer and Slaney (1997) distinguish it from music. Nothing is
// recognised: drums and applause with this rhythm look the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace vfm::media {

class SpeechLikeness {
 public:
  /// `rate`: samples a second, at least 8000, or nothing is ever known.
  explicit SpeechLikeness(int rate);
  void add(const float* mono, std::size_t count);
  /// 0 to 1: the share of the envelope's modulations from 0.5 to 25 Hz that lies in 2 to 8 Hz,
  /// times their depth if below 1 (root of twice their power over the mean envelope). 0 for
  /// silence. Nothing for less than a second.
  std::optional<double> result();

 private:
  /// A second-order section, as in the cookbook of Bristow-Johnson.
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
  double power_ = 0, phase_ = 0;  // of the value that is open
  std::size_t in_value_ = 0;
  std::vector<double> envelope_;  // of the piece that is open
  double syllables_ = 0, all_ = 0, mean_squared_ = 0;
  bool known_ = false;
};

}  // namespace vfm::media
