// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/motion.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "curate/measures/clip_meter.h"
#include "curate/shots/stitch.h"
#include "drawing.h"

using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;

namespace {

SmallPicture picture(const vfm::media::Frame& frame) {
  SmallPicture p;
  sample_picture(frame, p);
  return p;
}

template <class Paint>
SmallPicture picture_of(Paint&& paint) {
  return picture(drawing::frame(64, 64, paint));
}

MotionVector median(const MotionField& field) {
  std::array<float, kBlocks * kBlocks> xs, ys;
  for (std::size_t i = 0; i < xs.size(); ++i)
    xs[i] = field.vectors[i].x, ys[i] = field.vectors[i].y;
  std::nth_element(xs.begin(), xs.begin() + 32, xs.end());
  std::nth_element(ys.begin(), ys.begin() + 32, ys.end());
  return {xs[32], ys[32]};
}

}  // namespace

TEST_CASE("a shift is found, whole and by parts of a cell") {
  const Texture texture(1, 9);
  for (const auto& [dx, dy] :
       {std::pair{3.0, -2.0}, {0.0, 5.0}, {-7.0, 0.0}, {0.5, 0.0}, {1.25, -0.5}}) {
    MotionEstimator estimator;
    const SmallPicture before = picture_of(texture.shifted(0, 0));
    const SmallPicture after = picture_of(texture.shifted(-dx, -dy));
    estimator.estimate(before, after);
    const MotionField& field = estimator.estimate(before, after);
    INFO(dx << ", " << dy);
    CHECK(median(field).x == Approx(dx).margin(0.2));
    CHECK(median(field).y == Approx(dy).margin(0.2));
    if (dx == std::floor(dx)) CHECK(field.residual < 0.5f * field.difference);
  }
}

TEST_CASE("rest and noise give no motion") {
  const Texture texture(1, 9);
  MotionEstimator estimator;
  const SmallPicture still = picture_of(texture.shifted(0, 0));
  const MotionField& field = estimator.estimate(still, still);
  CHECK(field.difference == 0);
  CHECK(field.residual == 0);
  for (const MotionVector& v : field.vectors)
    CHECK((v.x == 0 && v.y == 0));
  const SmallPicture grey = picture_of([](int, int) { return Yuv{128}; });
  const SmallPicture grainy =
      picture_of([](int x, int y) { return Yuv{128.0 + (x * 7 + y * 13) % 2}; });
  for (const MotionVector& v : estimator.estimate(grey, grainy).vectors)
    CHECK((v.x == 0 && v.y == 0));
}

TEST_CASE("measures of a clip") {
  const Texture texture(1, 9);
  ClipMeter meter;
  MotionEstimator estimator;
  SmallPicture before = picture_of(texture.shifted(0, 0));
  for (int i = 0; i < 10; ++i) {
    const vfm::media::Frame frame = drawing::frame(64, 64, texture.shifted(-i, 0));
    FrameFeatures features;
    compute_features(frame, features);
    const MotionField& field = estimator.estimate(before, features.picture);
    meter.add(measure_frame(features, field, 1), features.picture, frame);
    before = features.picture;
  }
  const ClipMeasures m = meter.result(0.5);
  // One pixel of 64 a frame, in diagonals of 64 * sqrt(2).
  CHECK(m.motion == Approx(1 / (64 * std::sqrt(2.0))).epsilon(0.1));
  CHECK(m.motion_per_second == Approx(20 * m.motion));
  CHECK(m.frozen == 0);
  CHECK(m.black == 0);
  CHECK(m.brightness == Approx(0.5).margin(0.1));
  CHECK(m.sharpness > 0);
}

TEST_CASE("black, frozen and coloured frames are counted") {
  ClipMeter meter;
  MotionEstimator estimator;
  SmallPicture before{};
  for (int i = 0; i < 20; ++i) {
    const vfm::media::Frame frame = drawing::plain(80, 60, i < 5 ? Yuv{2} : Yuv{76, 85, 255});
    FrameFeatures features;
    compute_features(frame, features);
    if (i == 0) before = features.picture;
    meter.add(measure_frame(features, estimator.estimate(before, features.picture), 4.0 / 3),
              features.picture, frame);
    before = features.picture;
  }
  const ClipMeasures m = meter.result(1);
  CHECK(m.black == Approx(0.25));
  CHECK(m.frozen == Approx(18 / 20.0));  // not the first, not the change
  CHECK(m.sharpness == 0);
  REQUIRE(m.colors.size() == 2);
  CHECK(m.colors[0].rgb == "#fe0000");
  CHECK(m.colors[1].rgb == "#020202");
  CHECK(ClipMeter().result(0).motion == 0);
}

TEST_CASE("looks: the same scene is joined, another is not") {
  const Texture a(1, 16), b(2, 16);
  const SceneLook here = scene_look(picture_of(a.shifted(0, 0)));
  CHECK(look_similarity(here, here) == Approx(1));
  // A jump cut: the camera moved a little.
  CHECK(look_similarity(here, scene_look(picture_of(a.shifted(2, 1)))) > kStitchThreshold);
  CHECK(look_similarity(here, scene_look(picture_of(b.shifted(0, 0)))) < 0.4);
  // The same place in other light is another shot.
  CHECK(look_similarity(here, scene_look(picture_of([&](int x, int y) {
                          Yuv c = a.at(x, y);
                          c.y *= 0.5;
                          return c;
                        }))) < kStitchThreshold);
  const SceneLook red = scene_look(picture(drawing::plain(64, 64, {76, 85, 255})));
  const SceneLook blue = scene_look(picture(drawing::plain(64, 64, {29, 255, 107})));
  CHECK(look_similarity(red, red) == Approx(1));
  CHECK(look_similarity(red, blue) < kStitchThreshold);
}
