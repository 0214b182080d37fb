// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/look.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "base/json.h"
#include "curate/measures/camera.h"
#include "curate/measures/describe.h"

using namespace vfm;
using curate::Glimpse;
using curate::kGlimpseSize;
using media::RgbImage;

namespace {

struct Rgb {
  double r, g, b;
};
/// Colour at (x, y), 0 to 1 across the picture, at time t.
using Scene = std::function<Rgb(double x, double y, double t)>;

/// 2x2 points a pixel, averaged, as a scaler would.
RgbImage draw(const Scene& scene, double t, double noise = 0, unsigned seed = 1) {
  RgbImage image{kGlimpseSize, kGlimpseSize, {}};
  for (int y = 0; y < kGlimpseSize; ++y)
    for (int x = 0; x < kGlimpseSize; ++x) {
      Rgb sum{0, 0, 0};
      for (int k = 0; k < 4; ++k) {
        const Rgb c = scene((x + (k % 2 + 0.5) / 2) / kGlimpseSize,
                            (y + (k / 2 + 0.5) / 2) / kGlimpseSize, t);
        sum.r += c.r / 4, sum.g += c.g / 4, sum.b += c.b / 4;
      }
      for (const double v : {sum.r, sum.g, sum.b}) {
        seed = seed * 1664525u + 1013904223u;
        const double n = noise * ((seed >> 8) / double(1 << 24) - 0.5);
        image.pixels.push_back(
            static_cast<std::uint8_t>(std::lround(std::clamp(255 * (v + n), 0.0, 255.0))));
      }
    }
  return image;
}

Glimpse film(const Scene& scene, double noise = 0, unsigned seed = 1) {
  Glimpse glimpse;
  glimpse.lag = 0.125;
  for (int i = 0; i < curate::kGlimpsePictures; ++i) {
    const double t = (i + 0.5) / curate::kGlimpsePictures;
    glimpse.pictures.push_back(draw(scene, t, noise, seed + 2 * unsigned(i)));
    glimpse.later.push_back(draw(scene, t + 0.03, noise, seed + 2 * unsigned(i) + 1));
  }
  return glimpse;
}

/// A disc on grey that crosses the picture by (dx, dy).
Scene disc(Rgb colour, double dx, double dy, double ground = 0.5) {
  return [=](double x, double y, double t) {
    const double cx = 0.5 + dx * (t - 0.5), cy = 0.5 + dy * (t - 0.5);
    return std::hypot(x - cx, y - cy) < 0.18 ? colour : Rgb{ground, ground, ground};
  };
}

/// Detail everywhere, seen through a camera that shifts and zooms.
Scene landscape(double dx, double dy, double zoom, double phase = 0) {
  return [=](double x, double y, double t) {
    const double s = 1 + zoom * t;
    const double u = 9 * ((x - 0.5) / s - dx * t) + phase, v = 9 * ((y - 0.5) / s - dy * t);
    const double a =
        0.5 + 0.2 * std::sin(2.1 * u + std::sin(1.3 * v)) + 0.2 * std::sin(1.7 * v + u / 2);
    return Rgb{a, 0.8 * a, 0.4 + 0.3 * std::sin(u - v)};
  };
}

Scene flat(Rgb colour) {
  return [=](double, double, double) { return colour; };
}

double likeness(const Glimpse& a, const Glimpse& b) {
  return curate::dot(curate::look(a), curate::look(b));
}

const Rgb kRed{0.85, 0.15, 0.1}, kBlue{0.1, 0.2, 0.85};

}  // namespace

TEST_CASE("a look has length one and a fixed size") {
  for (const Scene& scene : {flat({0, 0, 0}), flat({0.5, 0.5, 0.5}), disc(kRed, 0.4, 0)}) {
    const auto look = curate::look(film(scene));
    CHECK(look.size() == curate::kLookDim);
    CHECK(curate::dot(look, look) == Approx(1).margin(1e-5));
    for (const float x : look)
      CHECK(std::isfinite(x));
  }
  CHECK(curate::look(Glimpse{}) == std::vector<float>(curate::kLookDim, 0.0f));
  Glimpse still;
  still.pictures.push_back(draw(disc(kRed, 0, 0), 0.5));
  CHECK(curate::dot(curate::look(still), curate::look(still)) == Approx(1).margin(1e-5));
  CHECK(curate::look_config()["dim"] == curate::kLookDim);
}

TEST_CASE("noise of a codec does not change a look") {
  for (const Scene& scene : {disc(kRed, 0.4, 0), landscape(0.3, 0, 0), disc(kBlue, 0, 0.3, 0.9)})
    CHECK(likeness(film(scene), film(scene, 0.04, 77)) > 0.985);
  CHECK(likeness(film(flat({0.2, 0.2, 0.2})), film(flat({0.2, 0.2, 0.2}), 0.04, 77)) > 0.98);
}

TEST_CASE("different clips look different") {
  const Glimpse red_left = film(disc(kRed, -0.4, 0));
  CHECK(likeness(red_left, film(disc(kRed, 0.4, 0))) < 0.9);
  CHECK(likeness(red_left, film(disc(kRed, 0, 0.4))) < 0.9);
  CHECK(likeness(red_left, film(disc(kBlue, -0.4, 0))) < 0.9);
  CHECK(likeness(red_left, film(landscape(0.3, 0, 0))) < 0.5);
  CHECK(likeness(film(landscape(0, 0, 0)), film(landscape(0, 0, 0, 2.5))) < 0.8);
  CHECK(likeness(film(flat({0, 0, 0})), film(flat({1, 1, 1}))) < 0.3);
  CHECK(likeness(film(flat(kRed)), film(flat(kBlue))) < 0.7);
}

TEST_CASE("which frames make a glimpse") {
  const auto one = curate::plan_glimpse(1, 25);
  CHECK(one.first == std::vector<std::int64_t>{0});
  CHECK(one.step == 0);
  for (const std::int64_t frames : {2, 3, 8, 24, 100, 100'000}) {
    const auto plan = curate::plan_glimpse(frames, 24);
    REQUIRE(plan.first.size() == curate::kGlimpsePictures);
    CHECK(plan.step >= 1);
    CHECK(plan.first.front() >= 0);
    CHECK(plan.first.back() + plan.step < frames);
    CHECK(std::is_sorted(plan.first.begin(), plan.first.end()));
  }
  CHECK(curate::plan_glimpse(100, 24).step == 3);
  CHECK(curate::plan_glimpse(100, 0).step == 1);
}

TEST_CASE("camera motion is found where detail is all over, and only there") {
  const auto still = curate::camera_motion(film(landscape(0, 0, 0)));
  CHECK(still.known);
  CHECK(still.right == 0);
  // The content moves right by 0.3 * 0.03 widths between the pictures of a pair: the camera turns
  // left.
  const auto pan = curate::camera_motion(film(landscape(0.3, 0, 0)));
  REQUIRE(pan.known);
  CHECK(pan.right == Approx(-0.3 * 0.03 / 0.125).epsilon(0.1));
  CHECK(std::abs(pan.up) < 0.01);
  const auto tilt = curate::camera_motion(film(landscape(0, 0.4, 0)));
  REQUIRE(tilt.known);
  CHECK(tilt.up == Approx(0.4 * 0.03 / 0.125).epsilon(0.1));
  const auto zoom = curate::camera_motion(film(landscape(0, 0, 0.4)));
  REQUIRE(zoom.known);
  CHECK(zoom.zoom > 0.06);
  CHECK(std::abs(zoom.right) < 0.01);
  // Something crosses a scene that does not move.
  const auto scene = landscape(0, 0, 0);
  const auto passer_by = [&](double x, double y, double t) {
    return std::hypot(x - t, y - 0.5) < 0.12 ? kRed : scene(x, y, 0);
  };
  const auto fixed = curate::camera_motion(film(passer_by));
  CHECK(fixed.known);
  CHECK(fixed.right == 0);
  CHECK_FALSE(curate::camera_motion(film(disc(kRed, 0.4, 0))).known);
  CHECK_FALSE(curate::camera_motion(film(flat(kRed))).known);
  CHECK_FALSE(curate::camera_motion(Glimpse{}).known);
}

TEST_CASE("basic colours have their names") {
  using curate::colour_name;
  const auto name = [](int r, int g, int b) { return std::string(colour_name(r, g, b)); };
  CHECK(name(0, 0, 0) == "black");
  CHECK(name(255, 255, 255) == "white");
  CHECK(name(128, 128, 128) == "grey");
  CHECK(name(255, 0, 0) == "red");
  CHECK(name(0, 160, 0) == "green");
  CHECK(name(0, 0, 255) == "blue");
  CHECK(name(255, 255, 0) == "yellow");
  CHECK(name(255, 165, 0) == "orange");
  CHECK(name(139, 69, 19) == "brown");
  CHECK(name(128, 0, 128) == "purple");
  CHECK(name(255, 192, 203) == "pink");
}

TEST_CASE("a sentence from measurements") {
  const Json facts = {{"media", "video"}, {"seconds", 2.08}, {"width", 96}, {"height", 64}};
  CHECK(curate::describe(facts, film(disc(kRed, 0.4, 0))) ==
        "A 2.1-second video, mostly grey with some red, with little motion.");
  CHECK(curate::describe(facts, film(landscape(0.6, 0, 0))).find("; the camera pans left.") !=
        std::string::npos);
  CHECK(curate::describe(facts, film(landscape(0, 0, 0)))
            .find("without motion; the camera is still.") != std::string::npos);
  CHECK(curate::describe({{"seconds", 11}, {"shots", 3}}, film(flat({0, 0, 0}))) ==
        "A very dark black-and-white 11-second video, in 3 shots, without motion.");
  CHECK(curate::describe({{"seconds", 8.0}, {"width", 9}, {"height", 16}}, Glimpse{}) ==
        "An 8-second upright video.");
  Glimpse picture;
  picture.pictures.push_back(draw(flat(kBlue), 0));
  CHECK(curate::describe({{"media", "image"}, {"seconds", 0}}, picture) == "A dark picture, blue.");
  CHECK(curate::describe(Json::object(), Glimpse{}) == "A video.");
  CHECK(curate::describe({{"seconds", "two"}, {"media", 3}, {"shots", -1}}, Glimpse{}) ==
        "A video.");
}
