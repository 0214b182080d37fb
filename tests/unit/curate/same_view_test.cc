// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/same_view.h"

#include <catch2/catch.hpp>

#include "drawing.h"

using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;

namespace {

template <class Paint>
SmallPicture picture(Paint&& paint) {
  SmallPicture out;
  sample_picture(drawing::frame(128, 128, paint), out);
  return out;
}

}  // namespace

TEST_CASE("edges are shared in another light, under a title and from a camera that turned") {
  const Texture scene(1, 10), fire(2, 60), other(3, 10);
  const SmallPicture plain = picture(scene.shifted(0, 0));
  const SmallPicture lit =
      picture([&](int x, int y) { return drawing::mix(scene.at(x, y), fire.at(x, y), 0.6); });
  const SmallPicture titled = picture([&](int x, int y) {
    return y >= 90 && y < 115 && x > 10 && x < 100 ? Yuv{30, 160, 100} : scene.at(x, y);
  });
  const SmallPicture turned = picture(scene.shifted(40, -12));  // 20 cells to the left, 6 down
  const SmallPicture cut = picture(other.shifted(0, 0));
  const SharedEdges in_light = shared_edges(plain, lit, {});
  CHECK(in_light.most());
  CHECK(in_light.right == 0);
  CHECK(in_light.down == 0);
  CHECK(in_light.strength == Approx(0.4).margin(0.1));
  CHECK(shared_edges(plain, titled, {}).most());
  const SharedEdges swung = shared_edges(plain, turned, {});
  CHECK(swung.most());
  CHECK(swung.right == -20);
  CHECK(swung.down == 6);
  CHECK(shared_edges(plain, plain, {}).share == 1);
  CHECK(shared_edges(plain, cut, {}).share < 0.2f);
  const SmallPicture grey = picture([](int, int) { return Yuv{}; });
  CHECK(shared_edges(grey, grey, {}).share == 0);
}

TEST_CASE("a seam or a frame that two pictures have in common does not make them one view") {
  const auto split = [](std::uint64_t seed, bool framed) {
    const Texture scene(seed, 10);
    return picture([&, framed](int x, int y) {
      if (framed)
        return x < 12 || x >= 116 || y < 12 || y >= 116 ? Yuv{200, 100, 150} : scene.at(x, y);
      if (x < 62) return Yuv{70, 120, 110};
      return x < 70 ? Yuv{220} : scene.at(x, y);
    });
  };
  CHECK_FALSE(shared_edges(split(1, false), split(2, false), {}).most());
  CHECK_FALSE(shared_edges(split(3, true), split(4, true), {}).most());
  // Without a scene beside it, a seam alone says nothing.
  const auto halves = [](double left, double right) {
    return picture([=](int x, int) { return Yuv{x < 63 ? left : right}; });
  };
  CHECK(shared_edges(halves(20, 200), halves(60, 230), {}).share == 0);
}

TEST_CASE("pictures differ in a box only where something is to be seen around it") {
  const auto titled = [](double contrast, double light, int high) {
    const Texture ground(5, 50);
    return picture([&, contrast, light, high](int x, int y) {
      if (x >= 10 && x < 118 && y >= 120 - high && y < 120) return Yuv{10};
      return Yuv{light + contrast * ground.at(x, y).y};
    });
  };
  const SmallPicture none = titled(0.1, 150, 0);
  CHECK(differ_in_box(none, titled(0.1, 150, 25), {}));
  CHECK(differ_in_box(titled(0.1, 150, 25), none, {}));
  CHECK_FALSE(differ_in_box(none, titled(0.1, 150, 70), {}));             // too much of it
  CHECK_FALSE(differ_in_box(none, titled(0.1, 140, 25), {}));             // another ground
  CHECK_FALSE(differ_in_box(titled(0, 150, 0), titled(0, 150, 25), {}));  // one colour
}

TEST_CASE("one shift explains a soft picture that moved, not one that went out of the picture") {
  const Texture soft(6, 70);
  const SmallPicture before = picture(soft.shifted(0, 0));
  const WholeShift moved = whole_shift(before, picture(soft.shifted(40, -12)));
  CHECK(moved.right == -20);
  CHECK(moved.down == 6);
  CHECK(moved.left_over < 0.2f);
  CHECK(whole_shift(before, before).left_over == 1);  // nothing to be explained
  CHECK(whole_shift(before, picture(Texture(7, 10).shifted(0, 0))).left_over > 0.5f);
  const auto shape = [](int left) {
    return picture([=](int x, int y) {
      return x >= left && x < left + 16 && y >= 56 && y < 72 ? Yuv{220, 100, 160} : Yuv{};
    });
  };
  CHECK(whole_shift(shape(20), shape(50)).right == 15 - 15 % 2);
  const SmallPicture other = picture([](int x, int y) {
    return x >= 90 && x < 102 && y >= 100 && y < 112 ? Yuv{20, 160, 100} : Yuv{};
  });
  CHECK(whole_shift(shape(20), other).left_over > 0.5f);
}
