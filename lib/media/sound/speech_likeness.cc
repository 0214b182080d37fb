// SPDX-License-Identifier: Apache-2.0
#include "media/sound/speech_likeness.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace vfm::media {
namespace {

constexpr double kValues = 100;              // Of the envelope, in a second.
constexpr std::size_t kEnvelopePiece = 200;  // Values that are analysed together.
constexpr std::size_t kShortest = 100;       // Values of the last piece.
constexpr double kSlowestChange = 0.5, kFastestChange = 25, kSlowSyllables = 2,
                 kFastSyllables = 8;  // Hz
constexpr double kSilent = 1e-6;      // Mean envelope of -120 dB.

}  // namespace

SpeechLikeness::SpeechLikeness(int rate)
    : samples_per_value_(rate / kValues),
      usable_(rate >= 8000),
      band_{pass(300, rate, true), pass(std::min(3400.0, 0.45 * rate), rate, false)} {}

SpeechLikeness::Section SpeechLikeness::pass(double frequency, double rate, bool high) {
  const double w = 2 * std::numbers::pi * frequency / std::max(rate, 1.0);
  const double c = std::cos(w), alpha = std::sin(w) / std::numbers::sqrt2;
  const double a0 = 1 + alpha, side = high ? (1 + c) / 2 : (1 - c) / 2;
  return {.b0 = side / a0,
          .b1 = (high ? -2 : 2) * side / a0,
          .b2 = side / a0,
          .a1 = -2 * c / a0,
          .a2 = (1 - alpha) / a0};
}

void SpeechLikeness::add(const float* mono, std::size_t count) {
  if (!usable_) return;
  for (std::size_t i = 0; i < count; ++i) {
    const double sample = std::isfinite(mono[i]) ? std::clamp(mono[i], -8.f, 8.f) : 0.f;
    const double x = band_[1].next(band_[0].next(sample));
    power_ += x * x, ++in_value_;
    if ((phase_ += 1) < samples_per_value_) continue;
    phase_ -= samples_per_value_;
    envelope_.push_back(std::sqrt(power_ / static_cast<double>(in_value_)));
    power_ = 0, in_value_ = 0;
    if (envelope_.size() == kEnvelopePiece) end_piece();
  }
}

void SpeechLikeness::end_piece() {
  const auto n = static_cast<double>(envelope_.size());
  const double mean = std::accumulate(envelope_.begin(), envelope_.end(), 0.0) / n;
  known_ = true;
  if (mean > kSilent) {
    // A Hann window. Its mean is 1/2, and the mean of its square is 3/8.
    for (std::size_t i = 0; i < envelope_.size(); ++i)
      envelope_[i] = (envelope_[i] - mean) *
                     (0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / n));
    const int last = static_cast<int>(kFastestChange * n / kValues);
    for (int k = static_cast<int>(std::ceil(kSlowestChange * n / kValues)); k <= last; ++k) {
      double re = 0, im = 0;
      for (std::size_t i = 0; i < envelope_.size(); ++i) {
        const double angle = 2 * std::numbers::pi * k * static_cast<double>(i) / n;
        re += envelope_[i] * std::cos(angle), im += envelope_[i] * std::sin(angle);
      }
      const double power = 2 * (re * re + im * im) / (n * n * 0.375);
      const double frequency = k * kValues / n;
      all_ += power;
      if (frequency >= kSlowSyllables && frequency <= kFastSyllables) syllables_ += power;
    }
    mean_squared_ += mean * mean;
  }
  envelope_.clear();
}

std::optional<double> SpeechLikeness::result() {
  if (envelope_.size() >= kShortest) end_piece();
  envelope_.clear();
  if (!known_) return std::nullopt;
  if (all_ <= 0 || mean_squared_ <= 0) return 0;
  return syllables_ / all_ * std::min(1.0, std::sqrt(2 * syllables_ / mean_squared_));
}

}  // namespace vfm::media
