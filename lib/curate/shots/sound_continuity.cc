// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/sound_continuity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <vector>

namespace vfm::curate {
namespace {

constexpr std::size_t kSoundWindow = 512, kSoundHop = 256,
                      kHalfWindow = kSoundWindow / 2;  // samples
constexpr std::array<double, 21> kBandEdges = {100,  200,  300,  400,  510,  630,  770,
                                               920,  1080, 1270, 1480, 1720, 2000, 2320,
                                               2700, 3150, 3700, 4400, 5300, 6400, 7700};  // Hz
constexpr std::size_t kBandCount = kBandEdges.size() - 1;
constexpr std::array<double, 3> kQuietQuantiles = {0.1, 0.2, 0.3};
constexpr double kBesideChange = 0.06;  // seconds that are left out
constexpr double kLeastPower = 3.2e-8;  // -75 dB
constexpr double kSilentPower = 1e-6;   // -60 dB
constexpr double kSteadyChange = 1, kUsualWeight = 2, kEvenRatio = 0.55;

constexpr double kSoundBinWidth = double{kContinuityRate} / kSoundWindow;
constexpr auto kFirstSoundBin = static_cast<std::size_t>(kBandEdges.front() / kSoundBinWidth) + 1;
constexpr auto kSoundBins =
    static_cast<std::size_t>(kBandEdges.back() / kSoundBinWidth) + 1 - kFirstSoundBin;

/// The levels of the bands of a window, in dB.
using WindowBands = std::array<float, kBandCount>;

/// The factors of a Fourier transform with a Hann window. Cosines are even and sines odd, so row n
/// is for the sum or the difference of the samples n and kSoundWindow - n. The bins of a row are
/// adjacent, so that the loop vectorises without changing the order of additions.
class WindowWaves {
 public:
  WindowWaves()
      : even_(kHalfWindow * kSoundBins), odd_(kHalfWindow * kSoundBins), band_(kSoundBins) {
    const auto turn = [](std::size_t steps) {
      return 2 * std::numbers::pi * static_cast<double>(steps % kSoundWindow) / kSoundWindow;
    };
    for (std::size_t n = 1; n <= kHalfWindow; ++n) {
      const double hann = 0.5 - 0.5 * std::cos(turn(n));
      for (std::size_t k = 0; k < kSoundBins; ++k) {
        const double angle = turn(n * (kFirstSoundBin + k));
        even_[(n - 1) * kSoundBins + k] = static_cast<float>(hann * std::cos(angle));
        odd_[(n - 1) * kSoundBins + k] = static_cast<float>(hann * std::sin(angle));
      }
    }
    for (std::size_t k = 0; k < kSoundBins; ++k) {
      const double frequency = static_cast<double>(kFirstSoundBin + k) * kSoundBinWidth;
      while (frequency >= kBandEdges[band_[k] + 1])
        ++band_[k];
      if (k + 1 < kSoundBins) band_[k + 1] = band_[k];
    }
  }

  /// Adds the power of each band. The samples are kContinuityChannels apart.
  void add_power(const float* samples, std::array<double, kBandCount>& power) const {
    std::array<float, kSoundBins> real{}, imaginary{};
    for (std::size_t n = 1; n <= kHalfWindow; ++n) {
      const float a = samples[n * kContinuityChannels];
      const float b = n < kHalfWindow ? samples[(kSoundWindow - n) * kContinuityChannels] : 0;
      const float sum = a + b, difference = a - b;
      const float* const even = even_.data() + (n - 1) * kSoundBins;
      const float* const odd = odd_.data() + (n - 1) * kSoundBins;
      for (std::size_t k = 0; k < kSoundBins; ++k) {
        real[k] += sum * even[k];
        imaginary[k] += difference * odd[k];
      }
    }
    // Parseval, for one half of the spectrum; the mean of a Hann window's squares is 3/8.
    constexpr double kScale = 2 / (kSoundWindow * (0.375 * kSoundWindow));
    for (std::size_t k = 0; k < kSoundBins; ++k)
      power[band_[k]] += kScale * (double{real[k]} * real[k] + double{imaginary[k]} * imaginary[k]);
  }

 private:
  std::vector<float> even_, odd_;  // [n][bin]
  std::vector<std::size_t> band_;  // of each bin
};

std::vector<WindowBands> bands_of(std::span<const float> samples) {
  static const WindowWaves waves;
  std::vector<WindowBands> windows;
  for (std::size_t at = 0; (at + kSoundWindow) * kContinuityChannels <= samples.size();
       at += kSoundHop) {
    std::array<double, kBandCount> power{};
    for (std::size_t channel = 0; channel < kContinuityChannels; ++channel)
      waves.add_power(samples.data() + at * kContinuityChannels + channel, power);
    WindowBands& bands = windows.emplace_back();
    for (std::size_t i = 0; i < kBandCount; ++i)
      bands[i] = static_cast<float>(10 * std::log10(power[i] + kLeastPower));
  }
  return windows;
}

double quantile_of(const std::vector<float>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Returns the distance of two sets of windows in dB. Neither set may be empty.
double sets_apart(std::span<const WindowBands> a, std::span<const WindowBands> b) {
  const auto in_order = [](std::span<const WindowBands> windows, std::size_t band) {
    std::vector<float> values;
    for (const WindowBands& one : windows)
      values.push_back(one[band]);
    std::sort(values.begin(), values.end());
    return values;
  };
  std::array<double, kBandCount> differences{};
  for (std::size_t band = 0; band < kBandCount; ++band) {
    const std::vector<float> x = in_order(a, band), y = in_order(b, band);
    for (const double part : kQuietQuantiles)
      differences[band] +=
          std::abs(quantile_of(x, part) - quantile_of(y, part)) / kQuietQuantiles.size();
  }
  // The middle half leaves out a tone that begins, and bands that the source does not have.
  std::sort(differences.begin(), differences.end());
  const auto middle = differences.begin() + kBandCount / 4;
  return std::accumulate(middle, middle + kBandCount / 2, 0.0) / (kBandCount / 2);
}

double between_halves(std::span<const WindowBands> side) {
  return sets_apart(side.first(side.size() / 2), side.subspan(side.size() / 2));
}

bool is_silent(std::span<const float> samples) {
  constexpr std::size_t kPiece = kSoundWindow * kContinuityChannels;
  for (std::size_t at = 0; at < samples.size(); at += kPiece) {
    const std::span<const float> piece = samples.subspan(at, std::min(kPiece, samples.size() - at));
    std::array<double, kContinuityChannels> power{};
    for (std::size_t i = 0; i < piece.size(); ++i)
      power[i % kContinuityChannels] += double{piece[i]} * piece[i];
    if (*std::max_element(power.begin(), power.end()) * kContinuityChannels >=
        kSilentPower * static_cast<double>(piece.size()))
      return false;
  }
  return true;
}

constexpr std::size_t values_in(double seconds) {
  return static_cast<std::size_t>(seconds * kContinuityRate) * kContinuityChannels;
}

}  // namespace

std::optional<SoundContinuity> sound_continuity(std::span<const float> before,
                                                std::span<const float> after) {
  if (std::min(before.size(), after.size()) < values_in(kContinuityLeast)) return std::nullopt;
  before = before.last(std::min(before.size(), values_in(kContinuitySide)));
  after = after.first(std::min(after.size(), values_in(kContinuitySide)));
  before = before.first(before.size() - values_in(kBesideChange));
  after = after.subspan(values_in(kBesideChange));
  if (is_silent(before) && is_silent(after)) return std::nullopt;
  const std::vector<WindowBands> a = bands_of(before), b = bands_of(after);
  SoundContinuity found;
  found.apart = sets_apart(a, b);
  found.usual = (between_halves(a) + between_halves(b)) / 2;
  const double r = found.apart / (kSteadyChange + kUsualWeight * found.usual);
  found.continuity = 1 / (1 + std::pow(r / kEvenRatio, 3));
  return found;
}

}  // namespace vfm::curate
