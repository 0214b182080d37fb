// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/bars.h"

#include <algorithm>
#include <cstdint>

namespace vfm::curate {
namespace {

constexpr int kSegments = 16;  // of a row or column, to see a bright word in a dark row
constexpr int kBlack = 14;     // largest full-range grey level of black after coding

/// Returns true if a segment has a mean above `black`. Samples are `step` bytes apart.
bool is_seen(const std::uint8_t* from, std::ptrdiff_t step, int count, int black) {
  for (int s = 0; s < kSegments; ++s) {
    const int begin = count * s / kSegments, end = count * (s + 1) / kSegments;
    std::int64_t sum = 0;
    for (int i = begin; i < end; ++i)
      sum += from[i * step];
    if (sum > static_cast<std::int64_t>(black) * (end - begin)) return true;
  }
  return false;
}

/// Gives the visible part with even edges. Returns false if the part is less than a third.
bool extent(const std::vector<bool>& seen, int& begin, int& size) {
  const auto first = std::find(seen.begin(), seen.end(), true);
  const auto last = std::find(seen.rbegin(), seen.rend(), true);
  const auto length = static_cast<int>(seen.size());
  begin = static_cast<int>(first - seen.begin());
  int end = length - static_cast<int>(last - seen.rbegin());
  begin += begin % 2;
  if (end < length) end -= end % 2;
  size = end - begin;
  return size > 0 && 3 * size >= length;
}

}  // namespace

void BarFinder::add(const media::Frame& frame) {
  if (width_ == 0) {
    width_ = frame.width;
    height_ = frame.height;
    row_seen_.resize(static_cast<std::size_t>(height_));
    column_seen_.resize(static_cast<std::size_t>(width_));
  }
  if (frame.width != width_ || frame.height != height_) return;
  const bool rgb = frame.layout == media::PixelLayout::rgb24;
  const int step = rgb ? 3 : 1;
  const std::uint8_t* luma = frame.plane[0] + (rgb ? 1 : 0);  // packed RGB: green
  const int black = frame.full_range || rgb ? kBlack : 16 + kBlack * 219 / 255;
  for (int y = 0; y < height_; ++y)
    if (!row_seen_[static_cast<std::size_t>(y)])
      row_seen_[static_cast<std::size_t>(y)] =
          is_seen(luma + static_cast<std::ptrdiff_t>(y) * frame.stride[0], step, width_, black);
  for (int x = 0; x < width_; ++x)
    if (!column_seen_[static_cast<std::size_t>(x)])
      column_seen_[static_cast<std::size_t>(x)] =
          is_seen(luma + static_cast<std::ptrdiff_t>(x) * step, frame.stride[0], height_, black);
}

std::optional<media::Rectangle> BarFinder::picture() const {
  media::Rectangle r;
  if (!extent(column_seen_, r.x, r.width) || !extent(row_seen_, r.y, r.height)) return std::nullopt;
  if (r.width == width_ && r.height == height_) return std::nullopt;
  return r;
}

}  // namespace vfm::curate
