// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/rational.h"

namespace vfm::clip {
namespace {

constexpr int kMostPixels = 16384;  // a side

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

int nearest_even(double value) {
  return std::clamp(2 * static_cast<int>(std::lround(value / 2)), 2, kMostPixels);
}

}  // namespace

std::string ClipSize::text() const {
  return short_side > 0 ? fmt::format("short:{}", short_side) : fmt::format("{}x{}", width, height);
}

std::pair<int, int> ClipSize::of(int shown_width, int shown_height) const {
  const double w = std::max(1, shown_width), h = std::max(1, shown_height);
  if (short_side > 0) {
    if (w < h) return {short_side, nearest_even(short_side * h / w)};
    return {nearest_even(short_side * w / h), short_side};
  }
  if (width < 0) return {nearest_even(height * w / h), height};
  if (height < 0) return {width, nearest_even(width * h / w)};
  return {width, height};
}

ClipSize parse_clip_size(std::string_view text) {
  const auto side = [](std::string_view word, bool free) -> std::optional<int> {
    const auto value = whole_number(word);
    if (value && ((*value >= 2 && *value <= kMostPixels) || (free && *value == -2)))
      return static_cast<int>(*value);
    return std::nullopt;
  };
  ClipSize size;
  if (text.starts_with("short:")) {
    if (const auto value = side(text.substr(6), false)) size.short_side = *value;
  } else if (const std::size_t x = text.find('x'); x != std::string_view::npos) {
    const auto width = side(text.substr(0, x), true), height = side(text.substr(x + 1), true);
    if (width && height && (*width > 0 || *height > 0)) size = {*width, *height, 0};
  }
  if (!size.any())
    fail_usage(
        "--scale: cannot read '{}' as a size; write 640x480, 640x-2 or -2x480 (-2 keeps the "
        "shape), "
        "or short:480, each side 2 to {} pixels",
        text, kMostPixels);
  return size;
}

Rational parse_clip_rate(std::string_view text) {
  const auto refuse = [&]() {
    fail_usage(
        "--fps: cannot read '{}' as a frame rate; write 24, 23.976 or 30000/1001, from 0.01 to "
        "1000",
        text);
  };
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto num = whole_number(text.substr(0, slash)),
               den = whole_number(text.substr(slash + 1));
    if (!num || !den || *num < 1 || *den < 1 || *num > 1'000'000 || *den > 1'000'000) refuse();
    const double value = static_cast<double>(*num) / static_cast<double>(*den);
    if (value < 0.01 || value > 1000) refuse();
    return {*num, *den};
  }
  const std::string word(text);
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !(value >= 0.01 && value <= 1000)) refuse();
  return nearest_rate(value);
}

/// Compares a time in ticks of the input with a time in half frames of the output.
int FrameClock::compare(std::int64_t ticks, std::int64_t half_frames) const {
  const __int128 a = static_cast<__int128>(ticks) * base_.num * 2 * rate_.num;
  const __int128 b = static_cast<__int128>(half_frames) * base_.den * rate_.den;
  return a < b ? -1 : a > b ? 1 : 0;
}

std::vector<media::Frame> FrameClock::push(const media::Frame& frame) {
  if (!first_) first_ = frame.pts;
  const std::int64_t end = frame.pts + frame.duration - *first_;
  std::vector<media::Frame> out;
  // An output frame belongs to the clip if its middle does, so the clip's length is rounded.
  const auto take = [&](media::Frame&& next) {
    if (next.pts == 0 || compare(end, 2 * next.pts + 1) >= 0)
      out.push_back(std::move(next));
    else
      waiting_ = std::move(next);
  };
  if (waiting_) {
    media::Frame waited = *std::exchange(waiting_, std::nullopt);
    take(std::move(waited));
  }
  while (!waiting_ && (next_ == 0 || compare(end, 2 * next_) > 0)) {
    media::Frame next = frame;
    next.pts = next_++;
    next.duration = 1;
    take(std::move(next));
  }
  return out;
}

}  // namespace vfm::clip
