// SPDX-License-Identifier: Apache-2.0
#include "data/clip_size.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/format.h"

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

WindowPlan plan_windows(std::int64_t available, const WindowRule& rule) {
  WindowPlan plan;
  plan.spread = rule.most > 0;
  plan.frames = plan.last = whole_groups(available, rule.frames, rule.step);
  if (plan.frames == 0) return plan;
  plan.windows = 1;
  plan.stride = std::max(1, plan.frames - rule.overlap);
  if (plan.frames < whole_groups(rule.frames, rule.frames, rule.step)) return plan;
  plan.windows = std::min<std::int64_t>(1 + (available - plan.frames) / plan.stride,
                                        plan.spread ? rule.most : kMostWindows);
  if (plan.spread) return plan;
  // With what it has in common with the one before.
  const std::int64_t rest = available - plan.windows * plan.stride;
  const int last = whole_groups(rest, rule.frames, rule.step);
  if (2 * last >= plan.frames && last > rule.overlap && plan.windows < kMostWindows) {
    ++plan.windows;
    plan.last = last;
  }
  return plan;
}

std::int64_t WindowPlan::first_of(std::int64_t window, std::int64_t available,
                                  std::optional<double> place) const {
  const std::int64_t spare = std::max<std::int64_t>(0, available - span());
  const std::int64_t before = spread ? spare * window / windows : 0;
  const std::int64_t own = spread ? spare / windows : spare;
  const auto shift =
      place ? std::min(own, static_cast<std::int64_t>(*place * static_cast<double>(own + 1)))
            : own / 2;
  return window * stride + before + shift;
}

void FrameCount::add(const FrameCount& other) {
  read += other.read;
  latents += other.latents;
  rate += other.rate;
  windows += other.windows;
  remainder += other.remainder;
}

FrameCount count_frames(std::int64_t read, std::int64_t available, const WindowRule& rule) {
  const auto in_windows = [&](const WindowPlan& plan) {
    std::int64_t frames = 0, end = 0;
    for (std::int64_t i = 0; i < plan.windows; ++i) {
      const std::int64_t first = plan.first_of(i, available, {}), after = first + plan.frames_of(i);
      frames += after - std::max(first, end);
      end = after;
    }
    return frames;
  };
  WindowRule all = rule;
  all.most = 0;
  FrameCount count{read, in_windows(plan_windows(available, rule)), read - available, 0, 0};
  if (rule.most > 0)
    count.windows =
        std::max<std::int64_t>(0, in_windows(plan_windows(available, all)) - count.latents);
  count.remainder = available - count.latents - count.windows;
  return count;
}

std::string window_key(const std::string& key, std::int64_t window, std::int64_t windows) {
  return windows == 1 ? key : vfm::format("{}-w{:03}", key, window);
}

std::optional<int> window_of_key(std::string_view key, std::string_view clip) {
  if (key == clip) return 0;
  int window = 0;
  if (!key.starts_with(clip) || !key.substr(clip.size()).starts_with("-w")) return std::nullopt;
  const char* const end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data() + clip.size() + 2, end, window);
  return error == std::errc{} && stop == end ? std::optional(window) : std::nullopt;
}

std::int64_t frames_at(const ClipFacts& clip, Rational fps) {
  constexpr double kLate = 1e-3;  // of a frame: more than rounding, less than half a tick
  if (fps.num <= 0 || clip.seconds <= 0) return clip.frames;
  const double found = clip.seconds * fps.value();
  if (found > static_cast<double>(clip.frames) - kLate) return clip.frames;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(found - kLate)));
}

}  // namespace vfm::data
