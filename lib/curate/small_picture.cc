// SPDX-License-Identifier: Apache-2.0
#include "curate/small_picture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace vfm::curate {
namespace {

using media::cell_range, media::cell_rows, media::CellSpan, media::CellRows;

/// Adds the eight bytes at `p` into four 16-bit sums, which fold_lanes() adds up.
std::uint64_t lanes_of_eight(const std::uint8_t* p) {
  constexpr std::uint64_t kEven = 0x00ff00ff00ff00ffull;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, p, sizeof bytes);
  return (bytes & kEven) + (bytes >> 8 & kEven);
}
unsigned fold_lanes(std::uint64_t lanes) {
  return static_cast<unsigned>(lanes * 0x0001000100010001ull >> 48);
}

template <int kSide>
void sample_plane(const std::uint8_t* plane, int stride, int width, int height, std::uint8_t* out) {
  // Narrow cells use every pixel of two rows. Wide cells use eight pixels in the middle.
  const bool wide = width >= 8 * kSide;
  std::array<CellSpan, kSide> columns;
  for (int x = 0; x < kSide; ++x)
    columns[x] = cell_range(x, kSide, width);
  for (int y = 0; y < kSide; ++y) {
    const auto [upper, lower] = cell_rows(y, kSide, height);
    const std::uint8_t* a = plane + static_cast<std::ptrdiff_t>(upper) * stride;
    const std::uint8_t* b = plane + static_cast<std::ptrdiff_t>(lower) * stride;
    for (int x = 0; x < kSide; ++x) {
      const CellSpan c = columns[x];
      if (wide) {
        const int middle = c.begin + (c.end - c.begin - 8) / 2;
        const unsigned sum = fold_lanes(lanes_of_eight(a + middle) + lanes_of_eight(b + middle));
        out[y * kSide + x] = static_cast<std::uint8_t>((sum + 8) / 16);
      } else {
        unsigned sum = 0;
        for (int i = c.begin; i < c.end; ++i)
          sum += a[i] + b[i];
        const unsigned n = 2 * static_cast<unsigned>(c.end - c.begin);
        out[y * kSide + x] = static_cast<std::uint8_t>((sum + n / 2) / n);
      }
    }
  }
}

/// Maps luma 16..235 and chroma 16..240 to 0..255.
void stretch_range(SmallPicture& p) {
  for (std::uint8_t& y : p.y)
    y = static_cast<std::uint8_t>(std::clamp((298 * (y - 16) + 128) / 256, 0, 255));
  const auto chroma = [](std::uint8_t c) {
    return static_cast<std::uint8_t>(std::clamp(128 + (292 * (c - 128) + 128) / 256, 0, 255));
  };
  for (std::uint8_t& u : p.u)
    u = chroma(u);
  for (std::uint8_t& v : p.v)
    v = chroma(v);
}

struct Rgb {
  int r, g, b;
};
Rgb rgb_mean(const media::Frame& f, CellSpan columns, CellRows rows) {
  Rgb sum{0, 0, 0};
  const int step = std::max(1, (columns.end - columns.begin) / 4);
  int n = 0;
  for (const int y : {rows.upper, rows.lower}) {
    const std::uint8_t* row = f.plane[0] + static_cast<std::ptrdiff_t>(y) * f.stride[0];
    for (int x = columns.begin; x < columns.end; x += step, ++n) {
      sum.r += row[3 * x], sum.g += row[3 * x + 1], sum.b += row[3 * x + 2];
    }
  }
  return {sum.r / n, sum.g / n, sum.b / n};
}

/// Converts to BT.601 of full range. The weights are in 1/256.
void sample_rgb(const media::Frame& f, SmallPicture& out) {
  const auto byte = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); };
  for (int y = 0; y < kLumaSide; ++y) {
    for (int x = 0; x < kLumaSide; ++x) {
      const Rgb c =
          rgb_mean(f, cell_range(x, kLumaSide, f.width), cell_rows(y, kLumaSide, f.height));
      out.y[y * kLumaSide + x] = byte((77 * c.r + 150 * c.g + 29 * c.b + 128) >> 8);
    }
  }
  for (int y = 0; y < kChromaSide; ++y) {
    for (int x = 0; x < kChromaSide; ++x) {
      const Rgb c =
          rgb_mean(f, cell_range(x, kChromaSide, f.width), cell_rows(y, kChromaSide, f.height));
      out.u[y * kChromaSide + x] = byte(128 + ((-43 * c.r - 85 * c.g + 128 * c.b + 128) >> 8));
      out.v[y * kChromaSide + x] = byte(128 + ((128 * c.r - 107 * c.g - 21 * c.b + 128) >> 8));
    }
  }
}

/// Returns the variance of the cells in `area`. The plane is `shrink` times smaller than luma.
double variance(const std::uint8_t* cells, int side, const ActiveArea& area, int shrink) {
  std::uint32_t sum = 0, squares = 0;  // at most 4096 * 255^2 < 2^32
  for (int y = area.top / shrink; y < area.bottom / shrink; ++y) {
    const std::uint8_t* row = cells + y * side;
    for (int x = area.left / shrink; x < area.right / shrink; ++x)
      sum += row[x], squares += std::uint32_t{row[x]} * row[x];
  }
  const double n =
      static_cast<double>(area.right - area.left) * (area.bottom - area.top) / (shrink * shrink);
  return std::max(0.0, squares / n - (sum / n) * (sum / n));
}

}  // namespace

void sample_picture(const media::Frame& f, SmallPicture& out) {
  if (f.layout == media::PixelLayout::rgb24) return sample_rgb(f, out);
  sample_plane<kLumaSide>(f.plane[0], f.stride[0], f.width, f.height, out.y.data());
  if (f.layout == media::PixelLayout::gray) {
    out.u.fill(128);
    out.v.fill(128);
  } else {
    const bool narrow = f.layout != media::PixelLayout::yuv444;
    const bool low = f.layout == media::PixelLayout::yuv420;
    const int width = narrow ? (f.width + 1) / 2 : f.width;
    const int height = low ? (f.height + 1) / 2 : f.height;
    sample_plane<kChromaSide>(f.plane[1], f.stride[1], width, height, out.u.data());
    sample_plane<kChromaSide>(f.plane[2], f.stride[2], width, height, out.v.data());
  }
  if (!f.full_range) stretch_range(out);
}

void halve_luma(const SmallPicture& p, std::array<std::uint8_t, kChromaCells>& out) {
  for (int y = 0; y < kChromaSide; ++y) {
    const std::uint8_t* a = p.y.data() + 2 * y * kLumaSide;
    const std::uint8_t* b = a + kLumaSide;
    for (int x = 0; x < kChromaSide; ++x)
      out[y * kChromaSide + x] =
          static_cast<std::uint8_t>((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 2) / 4);
  }
}

LumaStatistics luma_statistics(const SmallPicture& p, int dark) {
  std::uint32_t sum = 0, below = 0;
  for (const std::uint8_t y : p.y)
    sum += y, below += y < dark ? 1u : 0u;
  LumaStatistics s;
  s.mean = static_cast<float>(sum) / kLumaCells;
  s.deviation = static_cast<float>(std::sqrt(variance(p.y.data(), kLumaSide, {}, 1)));
  s.dark = static_cast<float>(below) / kLumaCells;
  return s;
}

ActiveArea active_area(const SmallPicture& p) {
  constexpr int kBlack = 12;  // luma of the lightest cell of a bar
  std::array<std::uint8_t, kLumaSide> rows{}, columns{};
  for (int y = 0; y < kLumaSide; ++y) {
    const std::uint8_t* row = p.y.data() + y * kLumaSide;
    std::uint8_t lightest = 0;
    for (int x = 0; x < kLumaSide; ++x) {
      lightest = std::max(lightest, row[x]);
      columns[x] = std::max(columns[x], row[x]);
    }
    rows[y] = lightest;
  }
  const auto light = [](std::uint8_t value) { return value > kBlack; };
  const auto first_row = std::find_if(rows.begin(), rows.end(), light);
  if (first_row == rows.end()) return {};
  const auto last_row = std::find_if(rows.rbegin(), rows.rend(), light);
  const auto first_column = std::find_if(columns.begin(), columns.end(), light);
  const auto last_column = std::find_if(columns.rbegin(), columns.rend(), light);
  // Cells at the edge of a bar mix bar and picture, and would make any two pictures look alike.
  const auto begin = [](auto bar) { return bar > 0 ? static_cast<int>(bar) / 2 * 2 + 2 : 0; };
  const auto end = [&](auto bar) { return kLumaSide - begin(bar); };
  const ActiveArea area{begin(first_column - columns.begin()), begin(first_row - rows.begin()),
                        end(last_column - columns.rbegin()), end(last_row - rows.rbegin())};
  // A few lights in the dark do not mean bars. Bars on two sides may be wide, as for a telephone's
  // upright video in a wide frame, but bars on four sides are narrow.
  const int width = area.right - area.left, height = area.bottom - area.top;
  const bool two_sides = width == kLumaSide || height == kLumaSide;
  return width * height < kLumaCells / (two_sides ? 6 : 2) ? ActiveArea{} : area;
}

ActiveArea join(const ActiveArea& a, const ActiveArea& b) {
  return {std::min(a.left, b.left), std::min(a.top, b.top), std::max(a.right, b.right),
          std::max(a.bottom, b.bottom)};
}

float colour_deviation(const SmallPicture& p, const ActiveArea& area) {
  return static_cast<float>(std::sqrt(variance(p.y.data(), kLumaSide, area, 1) +
                                      variance(p.u.data(), kChromaSide, area, 2) +
                                      variance(p.v.data(), kChromaSide, area, 2)));
}

}  // namespace vfm::curate
