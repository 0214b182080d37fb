// SPDX-License-Identifier: Apache-2.0
#include "media/colour/tone_map.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace vfm::media {
namespace {

constexpr int kPoints = 65, kStep = 16;  // A grid over 1024 codes.
constexpr double kWhite = 203;           // cd/m2
using Rgb = std::array<double, 3>;

// SMPTE ST 2084: converts a signal of 0 to 1 into cd/m2, and back.
constexpr double kM1 = 2610.0 / 16384, kM2 = 2523.0 / 32, kC1 = 3424.0 / 4096, kC2 = 2413.0 / 128,
                 kC3 = 2392.0 / 128;
double pq_to_light(double signal) {
  const double p = std::pow(std::clamp(signal, 0.0, 1.0), 1 / kM2);
  return 10000 * std::pow(std::max(p - kC1, 0.0) / (kC2 - kC3 * p), 1 / kM1);
}
double light_to_pq(double light) {
  const double p = std::pow(std::clamp(light / 10000, 0.0, 1.0), kM1);
  return std::pow((kC1 + kC2 * p) / (1 + kC3 * p), kM2);
}

// ARIB STD-B67: converts a signal of 0 to 1 into scene light of 0 to 1.
double hlg_to_scene(double signal) {
  constexpr double kA = 0.17883277, kB = 0.28466892, kC = 0.55991073;
  const double s = std::clamp(signal, 0.0, 1.0);
  return s <= 0.5 ? s * s / 3 : (std::exp((s - kC) / kA) + kB) / 12;
}

Rgb light_of(const Rgb& signal, int transfer) {
  Rgb light;
  if (transfer == 16) {
    for (std::size_t i = 0; i < 3; ++i)
      light[i] = pq_to_light(signal[i]);
    return light;
  }
  if (transfer != 18) {
    for (std::size_t i = 0; i < 3; ++i)
      light[i] = kWhite * std::pow(std::clamp(signal[i], 0.0, 1.0), 2.4);
    return light;
  }
  for (std::size_t i = 0; i < 3; ++i)
    light[i] = hlg_to_scene(signal[i]);
  // A display has a gamma of 1.2 at 1000 cd/m2.
  const double luminance = 0.2627 * light[0] + 0.6780 * light[1] + 0.0593 * light[2];
  const double gain = 1000 * std::pow(luminance, 0.2);
  for (double& c : light)
    c *= gain;
  return light;
}

// The curve of BT.2390-10, 5.4.1, without black level lift.
double compress(double light, double peak) {
  if (peak <= kWhite) return light;
  const double top = light_to_pq(peak), most = light_to_pq(kWhite) / top;
  const double knee = 1.5 * most - 0.5, e = std::min(1.0, light_to_pq(light) / top);
  if (e < knee) return light;
  const double t = (e - knee) / (1 - knee), t2 = t * t, t3 = t2 * t;
  const double p =
      (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (-2 * t3 + 3 * t2) * most;
  return pq_to_light(p * top);
}

Rgb to_bt709(const Rgb& c) {
  return {1.6605 * c[0] - 0.5876 * c[1] - 0.0728 * c[2],
          -0.1246 * c[0] + 1.1329 * c[1] - 0.0083 * c[2],
          -0.0182 * c[0] - 0.1006 * c[1] + 1.1187 * c[2]};
}

std::uint16_t fixed(double value) {
  return static_cast<std::uint16_t>(std::lround(std::clamp(value, 0.0, 255.0) * 64));
}

}  // namespace

ToneMap::Kind ToneMap::kind_of(const Frame& picture) {
  Kind kind;
  kind.transfer = picture.color.transfer;
  kind.primaries = picture.color.primaries;
  kind.matrix = picture.color.matrix;
  kind.full_range = picture.full_range;
  const HdrMetadata& hdr = picture.hdr;
  constexpr double kUnit = 10000;  // Units of max_luminance per cd/m2.
  if (kind.transfer == 16 && hdr.max_light > 0)
    kind.peak = hdr.max_light;
  else if (kind.transfer == 16 && hdr.max_luminance > 0)
    kind.peak = static_cast<int>(std::lround(hdr.max_luminance / kUnit));
  if (kind.peak <= 0) kind.peak = 1000;
  kind.peak = is_hdr(kind.transfer) ? std::clamp(kind.peak, static_cast<int>(kWhite), 10000)
                                    : static_cast<int>(kWhite);
  return kind;
}

ToneMap::ToneMap(const Kind& kind) : kind_(kind) {
  const bool bt709 = kind.matrix == 1;
  const double kr = bt709 ? 0.2126 : 0.2627, kb = bt709 ? 0.0722 : 0.0593, kg = 1 - kr - kb;
  const double luma_low = kind.full_range ? 0 : 64, luma_range = kind.full_range ? 1023 : 876;
  const double chroma_range = kind.full_range ? 1023 : 896;
  grid_.reserve(std::size_t{kPoints} * kPoints * kPoints);
  for (int i = 0; i < kPoints; ++i) {
    for (int j = 0; j < kPoints * kPoints; ++j) {
      const double y = (kStep * i - luma_low) / luma_range;
      const double u = (kStep * (j / kPoints) - 512) / chroma_range;
      const double v = (kStep * (j % kPoints) - 512) / chroma_range;
      const double r = y + 2 * (1 - kr) * v, b = y + 2 * (1 - kb) * u;
      Rgb c = light_of({r, (y - kr * r - kb * b) / kg, b}, kind.transfer);
      const double most = std::max({c[0], c[1], c[2]});
      const double gain = most > 0 ? compress(most, kind.peak) / most / kWhite : 0;
      for (double& part : c)
        part *= gain;
      if (kind.primaries != 1) c = to_bt709(c);
      for (double& part : c)
        part = std::pow(std::clamp(part, 0.0, 1.0), 1 / 2.4);
      const double luma = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
      grid_.push_back({fixed(16 + 219 * luma), fixed(128 + 224 * (c[2] - luma) / 1.8556),
                       fixed(128 + 224 * (c[0] - luma) / 1.5748)});
    }
  }
}

// Trilinear interpolation. The weights are products of three 4-bit numbers.
ToneMap::Point ToneMap::at(int y, int u, int v) const {
  const int cell[3] = {y / kStep, u / kStep, v / kStep};
  const int part[3] = {y % kStep, u % kStep, v % kStep};
  int sum[3] = {};
  for (int corner = 0; corner < 8; ++corner) {
    const int a = corner >> 2, b = corner >> 1 & 1, c = corner & 1;
    const int weight = (a ? part[0] : kStep - part[0]) * (b ? part[1] : kStep - part[1]) *
                       (c ? part[2] : kStep - part[2]);
    const Point& point = grid_[static_cast<std::size_t>(
        ((cell[0] + a) * kPoints + cell[1] + b) * kPoints + cell[2] + c)];
    sum[0] += weight * point.y, sum[1] += weight * point.u, sum[2] += weight * point.v;
  }
  constexpr int kHalf = 1 << 11, kBits = 12;
  return {static_cast<std::uint16_t>((sum[0] + kHalf) >> kBits),
          static_cast<std::uint16_t>((sum[1] + kHalf) >> kBits),
          static_cast<std::uint16_t>((sum[2] + kHalf) >> kBits)};
}

Frame ToneMap::map(const Frame& from) const {
  Frame to = make_frame(PixelLayout::yuv420, from.width, from.height);
  copy_facts(from, to);
  to.color = {1, 1, 1};
  to.full_range = false;
  to.hdr = {};
  to.chroma_location = 0;
  const auto row = [&](int p, int y) {
    return reinterpret_cast<const std::uint16_t*>(from.plane[p] +
                                                  static_cast<std::ptrdiff_t>(y) * from.stride[p]);
  };
  const auto out = [&](int p, int y) {
    return writable(to, p) + static_cast<std::ptrdiff_t>(y) * to.stride[p];
  };
  constexpr int kMost = 1023, kRound = 32, kUnit = 64;
  for (int y = 0; y < from.height; ++y)
    for (int x = 0; x < from.width; ++x)
      out(0, y)[x] = static_cast<std::uint8_t>(
          (at(std::min<int>(row(0, y)[x], kMost), std::min<int>(row(1, y / 2)[x / 2], kMost),
              std::min<int>(row(2, y / 2)[x / 2], kMost))
               .y +
           kRound) /
          kUnit);
  for (int y = 0; y < (from.height + 1) / 2; ++y) {
    const int below = std::min(2 * y + 1, from.height - 1);
    for (int x = 0; x < (from.width + 1) / 2; ++x) {
      const int right = std::min(2 * x + 1, from.width - 1);
      const int luma = (row(0, 2 * y)[2 * x] + row(0, 2 * y)[right] + row(0, below)[2 * x] +
                        row(0, below)[right] + 2) /
                       4;
      const Point p = at(std::min(luma, kMost), std::min<int>(row(1, y)[x], kMost),
                         std::min<int>(row(2, y)[x], kMost));
      out(1, y)[x] = static_cast<std::uint8_t>((p.u + kRound) / kUnit);
      out(2, y)[x] = static_cast<std::uint8_t>((p.v + kRound) / kUnit);
    }
  }
  return to;
}

Frame ToneMapper::map(const Frame& frame) {
  if (frame.layout != PixelLayout::yuv420p10) return frame;
  const ToneMap::Kind kind = ToneMap::kind_of(frame);
  if (!map_ || map_->kind() != kind) map_ = std::make_shared<const ToneMap>(kind);
  return map_->map(frame);
}

}  // namespace vfm::media
