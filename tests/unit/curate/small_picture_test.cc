// SPDX-License-Identifier: Apache-2.0
#include "curate/small_picture.h"

#include <catch2/catch.hpp>

#include "drawing.h"

using namespace vfm::curate;
using vfm::media::Frame;
using vfm::media::PixelLayout;

namespace {

bool all(const auto& cells, int value, int tolerance = 0) {
  for (const int c : cells)
    if (std::abs(c - value) > tolerance) return false;
  return true;
}

}  // namespace

TEST_CASE("a plain frame of any size gives plain cells") {
  for (const auto& [width, height] :
       {std::pair{1, 1}, {3, 5}, {64, 64}, {97, 63}, {511, 300}, {512, 300}, {1920, 8}}) {
    SmallPicture p;
    sample_picture(drawing::plain(width, height, {100, 60, 200}), p);
    CHECK(all(p.y, 100));
    CHECK(all(p.u, 60));
    CHECK(all(p.v, 200));
  }
}

TEST_CASE("limited range is stretched to full") {
  SmallPicture p;
  for (const auto& [stored, full] :
       {std::pair{16, 0}, {235, 255}, {126, 128}, {0, 0}, {255, 255}}) {
    Frame f = drawing::plain(64, 64, {static_cast<double>(stored), 128, 128});
    f.full_range = false;
    sample_picture(f, p);
    CHECK(all(p.y, full, 1));
    CHECK(all(p.u, 128));
  }
  Frame f = drawing::plain(64, 64, {100, 16, 240});
  f.full_range = false;
  sample_picture(f, p);
  CHECK(all(p.u, 0, 1));
  CHECK(all(p.v, 255, 1));
}

TEST_CASE("packed RGB becomes BT.601 and grey has no chroma") {
  std::vector<std::uint8_t> red;
  for (int i = 0; i < 70 * 50; ++i)
    red.insert(red.end(), {255, 0, 0});
  Frame f;
  f.layout = PixelLayout::rgb24, f.width = 70, f.height = 50, f.full_range = true;
  f.plane[0] = red.data(), f.stride[0] = 210;
  SmallPicture p;
  sample_picture(f, p);
  CHECK(all(p.y, 76, 1));  // 0.299 * 255
  CHECK(all(p.u, 85, 1));
  CHECK(all(p.v, 255, 1));
  f = drawing::plain(33, 33, {200, 1, 2});
  f.layout = PixelLayout::gray;
  sample_picture(f, p);
  CHECK(all(p.y, 200));
  CHECK(all(p.u, 128));
}

TEST_CASE("cells stand where the picture has them") {
  // Left half dark, right half bright; top of U low, bottom high: at every size.
  for (const int size : {64, 100, 640, 1280}) {
    SmallPicture p;
    sample_picture(
        drawing::frame(
            size, size,
            [&](int x, int y) {
              return drawing::Yuv{x < size / 2 ? 10.0 : 240.0, y < size / 2 ? 20.0 : 220.0, 128};
            }),
        p);
    CHECK(p.y[0] == 10);
    CHECK(p.y[31] == 10);
    CHECK(p.y[32] == 240);
    CHECK(p.u[15 * kChromaSide] == 20);
    CHECK(p.u[16 * kChromaSide] == 220);
  }
}

TEST_CASE("statistics of luma") {
  SmallPicture p;
  sample_picture(
      drawing::frame(64, 64, [](int x, int) { return drawing::Yuv{x % 2 ? 0.0 : 200.0}; }), p);
  const LumaStatistics s = luma_statistics(p);
  CHECK(s.mean == Approx(100));
  CHECK(s.deviation == Approx(100));
  CHECK(s.dark == Approx(0.5));
}

TEST_CASE("the active area leaves out black bars and nothing else") {
  const drawing::Texture texture(1);
  const auto with_bars = [&](int left, int top, int right, int bottom) {
    SmallPicture p;
    sample_picture(drawing::frame(128, 128,
                                  [&](int x, int y) {
                                    const bool inside =
                                        x >= left && x < right && y >= top && y < bottom;
                                    return inside ? texture.at(x, y) : drawing::Yuv{3};
                                  }),
                   p);
    return active_area(p);
  };
  CHECK(with_bars(0, 0, 128, 128) == ActiveArea{});
  // Without the cells beside a bar, which may hold some of it.
  CHECK(with_bars(0, 16, 128, 112) == ActiveArea{0, 10, 64, 54});
  CHECK(with_bars(0, 17, 128, 111) == ActiveArea{0, 10, 64, 54});
  CHECK(with_bars(32, 0, 96, 128) == ActiveArea{18, 0, 46, 64});
  CHECK(with_bars(54, 0, 74, 128) == ActiveArea{});  // too narrow to judge a picture by
  CHECK(with_bars(44, 0, 84, 128) == ActiveArea{24, 0, 40, 64});
  CHECK(with_bars(12, 12, 116, 116) == ActiveArea{8, 8, 56, 56});
  CHECK(with_bars(32, 32, 96, 96) == ActiveArea{});  // a light in the dark
  CHECK(with_bars(0, 0, 0, 0) == ActiveArea{});
  CHECK(join({0, 8, 64, 56}, {16, 0, 48, 64}) == ActiveArea{});
}
