// Measures whether the background sound continues across a change of shot, or comes from another
// place or take.
//
// The background is heard in pauses between words and notes, so the quiet windows of each frequency
// band are compared (as in the minimum statistics of Martin, IEEE Trans. Speech and Audio
// Processing 9(5), 2001). The distance between the two sides is compared with the distance between
// the halves of each side.
//
// A side is up to a second, without the 60 ms next to the change. Hann windows of 32 ms begin every
// 16 ms. The 20 bands are critical bands from 100 to 7700 Hz (Zwicker 1961). Levels are in dB of
// full scale, from the summed power of both channels plus -75 dB, which hides quieter differences.
// The distance of two sets of windows in a band is the mean difference of their quantiles 0.1, 0.2
// and 0.3. Over all bands, the distance is the mean of the middle ten distances. With D the
// distance of the two sides, and U the mean distance of the halves of each side:
//
//   r = D / (1 dB + 2 U),  continuity = 1 / (1 + (r / 0.55)^3)
//
// There is no result for silence on both sides or a side below a quarter of a second. Pure;
// thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

namespace vfm::curate {

inline constexpr int kContinuityRate = 16000, kContinuityChannels = 2;
/// Seconds of a side: the most that is used, and the least that gives a result.
inline constexpr double kContinuitySide = 1, kContinuityLeast = 0.25;

struct SoundContinuity {
  double apart = 0;       ///< D, dB
  double usual = 0;       ///< U, dB
  double continuity = 1;  ///< 0 to 1; 1: the sound continues
};

/// `before` ends where the picture changes, `after` begins there. Samples are finite, at
/// kContinuityRate, interleaved left and right. Only the part next to the change is used.
std::optional<SoundContinuity> sound_continuity(std::span<const float> before,
                                                std::span<const float> after);

}  // namespace vfm::curate
