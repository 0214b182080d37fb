// Frames drawn for tests of curate: smooth random textures, shapes, plain colours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "media/frame.h"

namespace drawing {

struct Yuv {
  double y = 128, u = 128, v = 128;
};

/// A 4:2:0 frame, full range, filled by paint(x, y) with x and y in luma pixels.
template <class Paint>
vfm::media::Frame frame(int width, int height, Paint&& paint) {
  const int cw = (width + 1) / 2, ch = (height + 1) / 2;
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(
      static_cast<std::size_t>(width * height + 2 * cw * ch));
  const auto byte = [](double value) {
    return static_cast<std::uint8_t>(std::lround(std::min(255.0, std::max(0.0, value))));
  };
  std::uint8_t* p = bytes->data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      *p++ = byte(paint(x, y).y);
  for (int y = 0; y < ch; ++y)
    for (int x = 0; x < cw; ++x)
      *p++ = byte(paint(2 * x, 2 * y).u);
  for (int y = 0; y < ch; ++y)
    for (int x = 0; x < cw; ++x)
      *p++ = byte(paint(2 * x, 2 * y).v);
  vfm::media::Frame f;
  f.width = width, f.height = height;
  f.plane[0] = bytes->data();
  f.plane[1] = f.plane[0] + width * height;
  f.plane[2] = f.plane[1] + cw * ch;
  f.stride[0] = width, f.stride[1] = f.stride[2] = cw;
  f.full_range = true;
  f.owner = bytes;
  return f;
}

/// A smooth picture with detail about `scale` pixels large, repeated after 64 times that; seeds
/// give unrelated ones.
class Texture {
 public:
  explicit Texture(std::uint64_t seed, double scale = 12, Yuv base = {40, 78, 78})
      : scale_(scale), base_(base), nodes_(3 * kSide * kSide) {
    vfm::Random(seed, vfm::Purpose::test).fill_uniform(nodes_);
  }
  Yuv at(double x, double y) const {
    return {base_.y + 175 * value(x, y, 0), base_.u + 100 * value(x, y, 1),
            base_.v + 100 * value(x, y, 2)};
  }
  auto shifted(double dx, double dy) const {
    return [this, dx, dy](int x, int y) { return at(x + dx, y + dy); };
  }

 private:
  static constexpr int kSide = 64;
  double value(double x, double y, int plane) const {
    x /= scale_, y /= scale_;
    const double x0 = std::floor(x), y0 = std::floor(y);
    const double fx = smooth(x - x0), fy = smooth(y - y0);
    const auto node = [&](double i, double k) {
      const int column = static_cast<int>(i) & (kSide - 1), row = static_cast<int>(k) & (kSide - 1);
      return double{nodes_[static_cast<std::size_t>((plane * kSide + row) * kSide + column)]};
    };
    return (node(x0, y0) * (1 - fx) + node(x0 + 1, y0) * fx) * (1 - fy) +
           (node(x0, y0 + 1) * (1 - fx) + node(x0 + 1, y0 + 1) * fx) * fy;
  }
  static double smooth(double t) { return t * t * (3 - 2 * t); }
  double scale_;
  Yuv base_;
  std::vector<float> nodes_;
};

inline Yuv mix(Yuv a, Yuv b, double t) {
  return {a.y + (b.y - a.y) * t, a.u + (b.u - a.u) * t, a.v + (b.v - a.v) * t};
}

inline vfm::media::Frame plain(int width, int height, Yuv colour) {
  return frame(width, height, [&](int, int) { return colour; });
}

}  // namespace drawing
