// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/video_signature.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <vector>

using namespace vfm;
using curate::kLevelParts;
using curate::kSignatureSide;
using curate::LumaPlane;
using curate::SignatureMaker;
using curate::SignaturePicture;

namespace {

/// A plane with memory of its own.
struct Picture {
  int width, height;
  std::vector<std::uint8_t> pixels;
  LumaPlane plane(bool full = true) const { return {pixels.data(), width, width, height, full}; }
};

template <class Paint>
Picture paint(int width, int height, const Paint& level) {
  Picture picture{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      picture.pixels.push_back(static_cast<std::uint8_t>(level(x, y)));
  return picture;
}

/// The mean over a cell, by looking at each 1/32 of a pixel's sides.
double slow_mean(const Picture& picture, int cx, int cy) {
  double sum = 0;
  for (int v = 0; v < picture.height; ++v)
    for (int u = 0; u < picture.width; ++u) {
      const int x = (cx * picture.width + u) / kSignatureSide;
      const int y = (cy * picture.height + v) / kSignatureSide;
      sum += picture.pixels[static_cast<std::size_t>(y * picture.width + x)];
    }
  return sum / (picture.width * picture.height);
}

std::vector<SignaturePicture> film(double fps, double seconds, double speed) {
  std::vector<SignaturePicture> pictures;
  SignatureMaker maker(0, false, [&](const SignaturePicture& p) { pictures.push_back(p); });
  const int frames = static_cast<int>(std::lround(fps * seconds));
  for (int i = 0; i < frames; ++i) {
    const double t = i / fps;
    const Picture frame = paint(
        64, 36, [&](int x, int y) { return 128 + 100 * std::sin(0.15 * x + 0.1 * y - speed * t); });
    maker.push(frame.plane(), (i + 1) / fps);
  }
  maker.finish();
  CHECK(maker.count() == pictures.size());
  return pictures;
}

}  // namespace

TEST_CASE("cells are exact means, also of a part of a pixel") {
  for (const auto& [width, height] : {std::pair{80, 45}, {31, 7}, {32, 32}, {1, 1}, {323, 181}}) {
    const Picture picture =
        paint(width, height, [](int x, int y) { return (x * 37 + y * 91 + x * y * 5) % 256; });
    std::array<float, curate::kSignatureCells> means;
    curate::cell_means(picture.plane(), means);
    for (const auto& [x, y] : {std::pair{0, 0}, {31, 31}, {5, 17}, {30, 1}})
      CHECK(means[static_cast<std::size_t>(y * kSignatureSide + x)] ==
            Approx(slow_mean(picture, x, y)).margin(1e-3));
  }
}

TEST_CASE("limited range is stretched to the full one") {
  const Picture picture = paint(64, 64, [](int x, int) { return x < 32 ? 16 : 235; });
  std::array<float, curate::kSignatureCells> means;
  curate::cell_means(picture.plane(false), means);
  CHECK(means[0] == 0);
  CHECK(means[31] == Approx(255));
}

TEST_CASE("a signature has four pictures a second at any frame rate, and they are the same") {
  const auto at_60 = film(60, 3, 6), at_25 = film(25, 3, 6), at_12 = film(12, 3, 6);
  REQUIRE(at_60.size() == 12);
  REQUIRE(at_25.size() == 12);
  REQUIRE(at_12.size() == 12);
  // A frame shows its beginning until its end: by half of that they are apart, at 600 levels a
  // second.
  for (std::size_t k = 0; k < 12; ++k)
    for (std::size_t i = 0; i < curate::kSignatureCells; i += 17) {
      CHECK(std::abs(at_60[k][i] - at_25[k][i]) <= 8 * kLevelParts);
      CHECK(std::abs(at_60[k][i] - at_12[k][i]) <= 21 * kLevelParts);
    }
  const SignaturePicture still = film(25, 3, 0)[0], later = film(12, 3, 0)[7];
  for (std::size_t i = 0; i < curate::kSignatureCells; i += 17)
    CHECK(std::abs(still[i] - later[i]) <= 1);  // times are rounded
}

TEST_CASE("frames count by how long they are shown, and the last picture by half its time") {
  std::vector<SignaturePicture> pictures;
  const auto take = [&](const SignaturePicture& p) { pictures.push_back(p); };
  const Picture black = paint(8, 8, [](int, int) { return 0; });
  const Picture white = paint(8, 8, [](int, int) { return 200; });
  SignatureMaker maker(0, false, take);
  maker.push(black.plane(), 0.1875);
  maker.push(white.plane(), 0.1875);  // shown for no time
  maker.push(white.plane(), 1.1);
  maker.finish();
  REQUIRE(pictures.size() == 4);  // 0.1 s of a fifth are less than half
  CHECK(pictures[0][0] == 50 * kLevelParts);
  CHECK(pictures[3][1023] == 200 * kLevelParts);
  SignatureMaker longer(0, false, take);
  longer.push(white.plane(), 1.13);
  longer.finish();
  CHECK(longer.count() == 5);
}

TEST_CASE("pictures stand as they are shown") {
  const Picture corner = paint(64, 32, [](int x, int y) { return x < 32 && y < 16 ? 200 : 0; });
  const auto lit = [&](int rotation, bool mirror, int x, int y) {
    SignaturePicture picture{};
    SignatureMaker maker(rotation, mirror, [&](const SignaturePicture& p) { picture = p; });
    maker.push(corner.plane(), 0.25);
    return picture[static_cast<std::size_t>(y * kSignatureSide + x)] == 200 * kLevelParts;
  };
  CHECK(lit(0, false, 3, 3));
  CHECK(lit(90, false, 28, 3));
  CHECK(lit(180, false, 28, 28));
  CHECK(lit(270, false, 3, 28));
  CHECK(lit(0, true, 28, 3));
  CHECK(lit(90, true, 28, 28));
  CHECK_FALSE(lit(90, false, 3, 3));
}
