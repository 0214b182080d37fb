// Measures whether the background sound continues across a change of shot.
//
// The background is audible in pauses between words and notes. In each frequency band, the quiet
// windows before and after the change are therefore compared (as in the minimum statistics of
// Martin, IEEE Trans. Speech and Audio Processing 9(5), 2001).
//
// A side is one second of sound before or after the change, without the 60 ms next to the change.
// Hann windows of 32 ms begin every 16 ms. The 20 critical bands lie between 100 and 7700 Hz
// (Zwicker 1961). The level of a window in a band is the power of both channels plus a constant
// power (-75 dB of full scale), in dB. In each band, two sets of windows differ by the mean
// difference of the quantiles 0.1, 0.2 and 0.3 of their levels. Bands are sorted by this
// difference, and the distance of the sets is the mean over the ten bands in the middle. D is the
// distance of the two sides. U is the distance between the two halves of a side, averaged over both
// sides.
//
//   r = D / (1 dB + 2 U),  continuity = 1 / (1 + (r / 0.55)^3)
//
// There is no result if both sides are silent, or if a side is shorter than a quarter of a second.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

namespace vfm::curate {

inline constexpr int kContinuityRate = 16000, kContinuityChannels = 2;
/// The length of a side, and the shortest side that gives a result, in seconds.
inline constexpr double kContinuitySide = 1, kContinuityLeast = 0.25;

struct SoundContinuity {
  double apart = 0;       ///< Distance D in dB, between the two sides.
  double usual = 0;       ///< Mean distance U in dB, between the halves of a side.
  double continuity = 1;  ///< Between 0 (other sound) and 1 (the sound continues).
};

/// Compares the sound before and after a change of shot. Samples are finite, interleaved left and
/// right, at kContinuityRate. Only the side next to the change is used of `before` and of `after`.
std::optional<SoundContinuity> sound_continuity(std::span<const float> before,
                                                std::span<const float> after);

}  // namespace vfm::curate
