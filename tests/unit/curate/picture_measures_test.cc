// Measures of full pictures, on drawn pictures whose value is known.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/philox.h"
#include "curate/measures/camera_split.h"
#include "curate/measures/clip_meter.h"
#include "curate/measures/text_edges.h"
#include "drawing.h"

using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;

namespace {

constexpr int kWide = 320, kHigh = 192;

/// Numbers from 0 to 1, one a pixel.
std::vector<float> noise(std::uint64_t seed, int width = kWide, int height = kHigh) {
  std::vector<float> values(static_cast<std::size_t>(width * height));
  vfm::Random(seed, vfm::Purpose::test).fill_uniform(values);
  return values;
}

PictureMeasures measure_all(const std::vector<vfm::media::Frame>& frames) {
  PictureMeter meter;
  for (const vfm::media::Frame& frame : frames) {
    SmallPicture small;
    sample_picture(frame, small);
    meter.add(frame, small);
  }
  return meter.result().value();
}

template <class Paint>
PictureQuality quality_of(Paint&& paint) {
  return measure_all({drawing::frame(kWide, kHigh, paint)}).quality;
}

ReducedLuma reduced(const vfm::media::Frame& frame) {
  std::vector<std::uint8_t> room;
  ReducedLuma out;
  reduce_luma(luma_plane(frame, room), out);
  return out;
}

/// Letters of `size` rows: upright strokes of a quarter of it, some joined at the top or the
/// bottom.
bool in_letters(int x, int y, int left, int top, int letters, int size) {
  x -= left, y -= top;
  const int stroke = std::max(2, size / 5), pitch = size;
  if (x < 0 || y < 0 || y >= size || x >= letters * pitch) return false;
  const int letter = x / pitch, at = x % pitch;
  if (at < stroke) return true;
  if (at >= 3 * stroke && at < 4 * stroke) return true;
  return at < 4 * stroke && (letter % 2 == 0 ? y < stroke : y >= size - stroke);
}

}  // namespace

TEST_CASE("focus: white noise has 1, a smooth picture little, a flat one none") {
  const std::vector<float> n = noise(1);
  const auto at = [&](int x, int y) { return n[static_cast<std::size_t>(y * kWide + x)]; };
  CHECK(quality_of([&](int x, int y) { return Yuv{50 + 150.0 * at(x, y)}; }).focus ==
        Approx(1).epsilon(0.03));
  // Neither light nor contrast counts.
  CHECK(quality_of([&](int x, int y) { return Yuv{20 + 60.0 * at(x, y)}; }).focus ==
        Approx(1).epsilon(0.03));
  CHECK(quality_of(Texture(1, 24).shifted(0, 0)).focus < 0.05);
  CHECK(quality_of([](int, int) { return Yuv{99}; }).focus == 0);
}

TEST_CASE("exposure counts the ends of the range, of narrow range as of full") {
  for (const bool full : {true, false}) {
    vfm::media::Frame frame = drawing::frame(kWide, kHigh, [&](int x, int) {
      const double low = full ? 1 : 17, high = full ? 254 : 234;
      return Yuv{x < kWide / 4 ? low : x < 3 * kWide / 4 ? 128.0 : high};
    });
    frame.full_range = full;
    const PictureQuality q = measure_all({frame}).quality;
    INFO(full);
    // The columns at the left are dark, and one cell beside them, as bars would be.
    CHECK(q.overexposed == Approx(0.25).margin(0.1));
    CHECK(q.underexposed + q.overexposed < 0.51);
  }
}

TEST_CASE("blockiness: blocks of eight at their places, and nothing else") {
  const std::vector<float> n = noise(2);
  const auto block = [&](int x, int y, int shift) {
    return 40 + 150.0 * n[static_cast<std::size_t>((y + shift) / 8 * kWide + (x + shift) / 8)];
  };
  const std::vector<float> grain = noise(3);
  const auto grainy = [&](int x, int y) {
    return 4.0 * grain[static_cast<std::size_t>(y * kWide + x)];
  };
  CHECK(quality_of([&](int x, int y) { return Yuv{block(x, y, 0) + grainy(x, y)}; }).blockiness >
        10);
  CHECK(quality_of([&](int x, int y) { return Yuv{block(x, y, 3) + grainy(x, y)}; }).blockiness <
        1);
  CHECK(quality_of([&](int x, int y) { return Yuv{90 + grainy(x, y)}; }).blockiness ==
        Approx(1).margin(0.05));
  CHECK(quality_of([](int, int) { return Yuv{90}; }).blockiness == 1);
}

TEST_CASE(
    "banding: a slope in steps, either way; not the same slope with grain, nor flat colours") {
  const auto steps = [](int at) { return 60 + std::floor(at / 16.0); };
  // The first run, the last and the one before it have no two neighbours that are told.
  CHECK(quality_of([&](int x, int) { return Yuv{steps(x)}; }).banding == Approx(17 / 20.0));
  CHECK(quality_of([&](int, int y) { return Yuv{steps(y)}; }).banding == Approx(9 / 12.0));
  const std::vector<float> grain = noise(4);
  CHECK(quality_of([&](int x, int y) {
          return Yuv{60 + x / 16.0 + grain[static_cast<std::size_t>(y * kWide + x)] * 2};
        }).banding < 0.01);
  CHECK(quality_of([](int x, int) { return Yuv{60 + 12 * std::floor(x / 16.0)}; }).banding == 0);
}

TEST_CASE("combing: two fields of a moving edge, and none of a whole picture") {
  const Texture texture(5, 10);
  const auto paint = [&](bool fields) {
    return [&, fields](int x, int y) { return texture.at(x + (fields && y % 2 == 1 ? 6 : 0), y); };
  };
  CHECK(quality_of(paint(true)).combing > 0.2);
  CHECK(quality_of(paint(false)).combing < 0.001);
}

TEST_CASE("text area: lines of letters have their area; grain, leaves and bars have none") {
  const auto area = [](auto paint) { return text_area(reduced(drawing::frame(640, 360, paint))); };
  for (const int size : {10, 16, 24}) {
    INFO(size);
    const double found = area([&](int x, int y) {
      return Yuv{in_letters(x, y, 100, 200, 400 / size, size) ? 235.0 : 40.0};
    });
    const double drawn = 400.0 * size / (640 * 360);
    CHECK(found > 0.6 * drawn);
    CHECK(found < 2 * drawn);
    // Dark on light is writing, too, and so are several lines.
    CHECK(area([&](int x, int y) {
            const bool ink = in_letters(x, y, 100, 60, 400 / size, size) ||
                             in_letters(x, y, 100, 60 + 2 * size, 400 / size, size);
            return Yuv{ink ? 20.0 : 180.0};
          }) > 1.2 * drawn);
  }
  const std::vector<float> n = noise(6, 640, 360);
  CHECK(area([&](int x, int y) { return Yuv{255.0 * n[static_cast<std::size_t>(y * 640 + x)]}; }) ==
        0);
  const Texture leaves(7, 4);
  CHECK(area([&](int x, int y) { return leaves.at(x, y); }) < 0.01);
  CHECK(area([](int x, int) { return Yuv{x % 12 < 4 ? 220.0 : 30.0}; }) == 0);  // a fence
  CHECK(area([](int x, int y) {                                                 // bricks
          const int row = y / 20;
          return Yuv{y % 20 < 3 || (x + row % 2 * 24) % 48 < 3 ? 200.0 : 90.0};
        }) == 0);
  CHECK(area([](int, int) { return Yuv{90}; }) == 0);
}

TEST_CASE("bars, a logo and what to cut off") {
  const Texture texture(8, 10);
  std::vector<vfm::media::Frame> moving, resting, plain;
  for (int i = 0; i < 12; ++i) {
    const auto scene = [&texture](int shift, bool logo) {
      return [&texture, shift, logo](int x, int y) {
        if (y < 24 || y >= kHigh - 24) return Yuv{0};
        if (logo && in_letters(x, y, 250, 34, 4, 12)) return Yuv{250};
        return texture.at(x + shift, y + shift / 2);
      };
    };
    moving.push_back(drawing::frame(kWide, kHigh, scene(9 * i, true)));
    plain.push_back(drawing::frame(kWide, kHigh, scene(9 * i, false)));
    resting.push_back(drawing::frame(kWide, kHigh, scene(0, true)));
  }
  const PictureMeasures m = measure_all(moving);
  CHECK(m.bars == Approx(48.0 / kHigh));
  CHECK(m.picture == PixelArea{0, 24, kWide, kHigh - 24});
  REQUIRE(m.overlay);
  CHECK(std::abs(m.overlay->left - 250) <= 4);
  CHECK(std::abs(m.overlay->top - 34) <= 4);
  CHECK(std::abs(m.overlay->right - 298) <= 5);
  CHECK(std::abs(m.overlay->bottom - 46) <= 4);
  // The strip above costs least.
  CHECK(m.proposed_crop ==
        PixelArea{0, m.overlay->bottom + m.overlay->bottom % 2, kWide, kHigh - 24});
  const PictureMeasures none = measure_all(plain);
  CHECK(none.overlay_known);
  CHECK(!none.overlay);
  CHECK(none.proposed_crop == none.picture);
  CHECK(!measure_all(resting).overlay_known);
  CHECK(!PictureMeter().result());
  PictureMeter small;
  SmallPicture picture;
  const vfm::media::Frame tiny = drawing::plain(31, 80, {99});
  sample_picture(tiny, picture);
  small.add(tiny, picture);
  CHECK(!small.result());
}

TEST_CASE("motion is split into the camera's and that of things") {
  const Texture ground(9, 9), thing(10, 9);
  const auto split = [&](auto before, auto after) {
    SmallPicture p, q;
    sample_picture(drawing::frame(64, 64, before), p);
    sample_picture(drawing::frame(64, 64, after), q);
    MotionEstimator estimator;
    estimator.estimate(p, q);
    return split_motion(estimator.estimate(p, q), q, 1);
  };
  const double cell = 1 / (64 * std::sqrt(2.0));  // in diagonals
  const auto pan = split(ground.shifted(0, 0), ground.shifted(-3, 0));
  CHECK(pan.camera == Approx(3 * cell).epsilon(0.1));
  CHECK(pan.object < 0.3 * cell);
  // 64 of 256 pixels: a thing that moves by two, on a ground at rest, and on one that moves by -2.
  const auto scene = [&](double shift, double slide) {
    return [&, shift, slide](int x, int y) {
      const bool inside = x >= 16 + shift && x < 48 + shift && y >= 16 && y < 48;
      return inside ? thing.at(x - shift, y) : ground.at(x - slide, y);
    };
  };
  const auto alone = split(scene(0, 0), scene(2, 0));
  CHECK(alone.camera == 0);
  CHECK(alone.object == Approx(0.25 * 2 * cell).epsilon(0.35));
  const auto both = split(scene(0, 0), scene(2, -2));
  CHECK(both.camera == Approx(2 * cell).epsilon(0.2));
  CHECK(both.object == Approx(0.25 * 4 * cell).epsilon(0.4));
  const auto zoom = split(ground.shifted(0, 0), [&](int x, int y) {
    return ground.at(31.5 + (x - 31.5) / 1.06, 31.5 + (y - 31.5) / 1.06);
  });
  CHECK(zoom.camera > 0.7 * cell);
  CHECK(zoom.object < 0.35 * zoom.camera);
  const auto rest = split(ground.shifted(0, 0), ground.shifted(0, 0));
  CHECK((rest.camera == 0 && rest.object == 0));
}

TEST_CASE("doubled frames are counted, frames that stand longer are not") {
  const Texture texture(11, 9);
  const auto doubled = [&](const std::vector<int>& shifts) {
    ClipMeter meter;
    MotionEstimator estimator;
    SmallPicture before{};
    for (const int shift : shifts) {
      const vfm::media::Frame frame = drawing::frame(64, 64, texture.shifted(shift, 0));
      FrameFeatures features;
      compute_features(frame, features);
      meter.add(measure_frame(features, estimator.estimate(before, features.picture), 1),
                features.picture, frame);
      before = features.picture;
    }
    return meter.result(1).doubled;
  };
  CHECK(doubled({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == 0);
  CHECK(doubled({0, 1, 1, 2, 3, 3, 4, 5, 5, 6}) == Approx(0.3));
  CHECK(doubled({0, 1, 1, 1, 1, 2, 2, 2, 3, 4}) == 0);
}
