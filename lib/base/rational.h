// Exact times of a stream: its time base, and spans of timestamps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace vfm {

/// A fraction num/den, den > 0: a time base (1/12800) or a frame rate (30000/1001).
struct Rational {
  std::int64_t num = 0;
  std::int64_t den = 1;

  double value() const { return static_cast<double>(num) / static_cast<double>(den); }
  friend bool operator==(const Rational&, const Rational&) = default;
};

/// Returns a frame rate as an exact fraction, for FFmpeg: broadcast rates as n/1001, other rates
/// rounded to a thousandth.
inline Rational nearest_rate(double fps) {
  const double broadcast = fps * 1001 / 1000;
  if (fps == std::round(fps)) return {std::lround(fps), 1};
  if (std::abs(broadcast - std::round(broadcast)) < 1e-4)
    return {std::lround(broadcast) * 1000, 1001};
  return {std::max(1L, std::lround(fps * 1000)), 1000};
}

/// A half-open span [begin, end) of timestamps in units of `base` seconds.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Rational base;

  double begin_seconds() const { return static_cast<double>(begin) * base.value(); }
  double end_seconds() const { return static_cast<double>(end) * base.value(); }
  double seconds() const { return static_cast<double>(end - begin) * base.value(); }
};

}  // namespace vfm
