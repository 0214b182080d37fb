// SPDX-License-Identifier: Apache-2.0
#include "data/clip_size.h"

#include <algorithm>
#include <cmath>

namespace vfm::data {

Bucket bucket_of(int width, int height, int size, int multiple) {
  const double shape = std::sqrt(static_cast<double>(width) / height);
  const auto side = [&](double length) {
    return std::max(1, static_cast<int>(std::lround(length / multiple))) * multiple;
  };
  return {side(size * shape), side(size / shape)};
}

std::vector<std::int64_t> sample_times(const std::vector<std::int64_t>& pts, std::int64_t end,
                                       Rational base, Rational fps) {
  // Times in units of 1 / (base.den * fps.num) seconds are whole numbers.
  __extension__ using Wide = __int128;
  const Wide unit = Wide{base.num} * fps.num, step = Wide{fps.den} * base.den;
  std::vector<std::int64_t> out;
  if (pts.empty()) return out;
  const auto count = static_cast<std::int64_t>(pts.size());
  const Wide length = Wide{end - pts.front()} * unit;
  if (length >= step * count) return out;
  const auto time = [&](std::int64_t i) {
    return Wide{pts[static_cast<std::size_t>(i)] - pts.front()} * unit;
  };
  std::int64_t i = 0;
  // Timestamps are rounded to the time base: half a tick late is not late.
  for (Wide t = 0; 2 * t + unit < 2 * length; t += step) {
    while (i + 1 < count && 2 * time(i + 1) <= 2 * t + unit)
      ++i;
    out.push_back(i);
  }
  return out;
}

int whole_groups(std::int64_t available, int most, int step) {
  const std::int64_t frames = std::min<std::int64_t>(available, most);
  return frames < 1 ? 0 : static_cast<int>(1 + (frames - 1) / step * step);
}

std::int64_t frames_at(const ClipFacts& clip, Rational fps) {
  constexpr double kLate = 1e-3;  // of a frame: more than rounding, less than half a tick
  if (fps.num <= 0 || clip.seconds <= 0) return clip.frames;
  const double found = clip.seconds * fps.value();
  if (found > static_cast<double>(clip.frames) - kLate) return clip.frames;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(found - kLate)));
}

}  // namespace vfm::data
