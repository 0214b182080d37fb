// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/luma_plane.h"

#include <algorithm>

namespace vfm::curate {
namespace {

constexpr int kReducedSide = 360;

/// out[x] = sum of `rows` rows at column x.
void add_rows(const LumaPlane& plane, int top, int rows, int columns,
              std::vector<std::uint16_t>& out) {
  const std::uint8_t* p = plane.row(top);
  for (int x = 0; x < columns; ++x)
    out[static_cast<std::size_t>(x)] = p[x];
  for (int y = top + 1; y < top + rows; ++y) {
    p = plane.row(y);
    std::uint16_t* sum = out.data();
    for (int x = 0; x < columns; ++x)
      sum[x] = static_cast<std::uint16_t>(sum[x] + p[x]);
  }
}

/// Returns the full-range mean for each sum of `count` pixels.
std::vector<std::uint8_t> means_of_sums(int count, bool full) {
  std::vector<std::uint8_t> means(static_cast<std::size_t>(255 * count + 1));
  for (int sum = 0; sum <= 255 * count; ++sum) {
    const int level = sum / count;
    means[static_cast<std::size_t>(sum)] = static_cast<std::uint8_t>(
        full ? level : std::clamp((298 * (level - 16) + 128) / 256, 0, 255));
  }
  return means;
}

/// `kFixed` is `k`, so that the compiler unrolls the loop, or 0.
template <int kFixed>
void fold_columns(const std::uint16_t* sum, const std::vector<std::uint8_t>& means, int k,
                  int width, std::uint8_t* out) {
  const int step = kFixed > 0 ? kFixed : k;
  for (int x = 0; x < width; ++x, sum += step) {
    unsigned total = 0;
    for (int i = 0; i < step; ++i)
      total += sum[i];
    out[x] = means[total];
  }
}

}  // namespace

LumaPlane luma_plane(const media::Frame& frame, std::vector<std::uint8_t>& room) {
  if (frame.layout != media::PixelLayout::rgb24)
    return {frame.plane[0], frame.stride[0], frame.width, frame.height, frame.full_range};
  room.resize(static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height));
  std::uint8_t* out = room.data();
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* p = frame.plane[0] + static_cast<std::ptrdiff_t>(y) * frame.stride[0] + 1;
    for (int x = 0; x < frame.width; ++x)
      *out++ = p[3 * x];
  }
  return {room.data(), frame.width, frame.width, frame.height, true};
}

void reduce_luma(const LumaPlane& plane, ReducedLuma& out) {
  const int side = std::min(plane.width, plane.height);
  const int k = std::max(1, (side + kReducedSide / 2) / kReducedSide);
  out.factor = k;
  out.width = plane.width / k;
  out.height = plane.height / k;
  out.pixels.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height));
  const std::vector<std::uint8_t> means = means_of_sums(k * k, plane.full_range);
  std::vector<std::uint16_t> sums(static_cast<std::size_t>(out.width * k));
  const auto fold = k == 1   ? fold_columns<1>
                    : k == 2 ? fold_columns<2>
                    : k == 3 ? fold_columns<3>
                             : fold_columns<0>;
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.height; ++y, to += out.width) {
    add_rows(plane, y * k, k, out.width * k, sums);
    fold(sums.data(), means, k, out.width, to);
  }
}

}  // namespace vfm::curate
