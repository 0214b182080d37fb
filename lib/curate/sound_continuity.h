// Whether the sound goes on across a change of shot: the same background on both sides, or another
// place, another take.
//
// What is compared is the background: pauses between words and notes show it, so of each band the
// quiet windows count (as in the minimum statistics of Martin, IEEE Trans. Speech and Audio
// Processing 9(5), 2001). How far the two sides are apart is held against how far the halves of
// each side are: speech and music change all the time, the hum of a room does not.
//
// Each side is up to a second, without the 60 ms beside the change, where sound may be faded, or
// cut a frame or two from the picture. Windows of 32 ms, one each 16 ms, Hann's; 20 bands from 100
// to 7700 Hz between the critical bands' edges (Zwicker 1961), in dB of full scale, the power of
// both channels added, and of -75 dB, below which nothing is told apart. The distance of two sets
// of windows in one band is the mean difference of their quantiles 0.1, 0.2 and 0.3, and in all
// bands the mean of the middle ten of these. With D of the two sides, and U the mean of that of the
// halves of each side:
//
//   r = D / (1 dB + 2 U),  continuity = 1 / (1 + (r / 0.55)^3)
//
// Nothing is said of silence on both sides, and of less than a quarter of a second. Pure;
// thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

namespace vfm::curate {

inline constexpr int kContinuityRate = 16000, kContinuityChannels = 2;
/// Of each side, in seconds: what is looked at, and the least that says something.
inline constexpr double kContinuitySide = 1, kContinuityLeast = 0.25;

struct SoundContinuity {
  double apart = 0;       ///< D, dB
  double usual = 0;       ///< U, dB
  double continuity = 1;  ///< 0 to 1; 1: it goes on
};

/// `before` ends where the picture changes, `after` begins there: samples at kContinuityRate, left
/// and right in turn, finite. Of longer ones what is next to the change counts.
std::optional<SoundContinuity> sound_continuity(std::span<const float> before,
                                                std::span<const float> after);

}  // namespace vfm::curate
