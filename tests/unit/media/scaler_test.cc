// SPDX-License-Identifier: Apache-2.0
#include "media/colour/scaler.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "frame_hash.h"
#include "test_picture.h"

namespace {

using namespace vfm::media;

Frame flat(PixelLayout layout, int width, int height, std::array<int, 3> value) {
  Frame frame = make_frame(layout, width, height);
  for (int p = 0; p < plane_count(layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      std::memset(writable(frame, p) + std::ptrdiff_t{y} * frame.stride[p],
                  value[static_cast<std::size_t>(p)],
                  static_cast<std::size_t>(plane_row_bytes(frame, p)));
  return frame;
}

// ITU-T H.273's equations: what a pixel must be.
std::array<double, 3> to_rgb(std::array<int, 3> yuv, double kr, double kb, bool full) {
  const double y = full ? yuv[0] / 255.0 : (yuv[0] - 16) / 219.0;
  const double u = (yuv[1] - 128) / (full ? 255.0 : 224.0);
  const double v = (yuv[2] - 128) / (full ? 255.0 : 224.0);
  const double r = y + 2 * (1 - kr) * v, b = y + 2 * (1 - kb) * u;
  const double g = (y - kr * r - kb * b) / (1 - kr - kb);
  const auto code = [](double c) { return 255 * std::min(1.0, std::max(0.0, c)); };
  return {code(r), code(g), code(b)};
}

// A frame in which every sample is different from its neighbours.
Frame busy(PixelLayout layout, int width, int height) {
  Frame frame = make_frame(layout, width, height);
  for (int p = 0; p < plane_count(layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      for (int x = 0; x < plane_row_bytes(frame, p); ++x)
        writable(frame, p)[y * frame.stride[p] + x] =
            static_cast<std::uint8_t>(x * 7 + y * 31 + p * 101);
  frame.pts = 5;
  frame.index = 3;
  return frame;
}

std::array<int, 3> pixel(const RgbImage& image, int x, int y) {
  const std::uint8_t* p = &image.pixels[static_cast<std::size_t>(3 * (y * image.width + x))];
  return {p[0], p[1], p[2]};
}

}  // namespace

TEST_CASE("YUV becomes RGB by the frame's matrix and range") {
  const auto layout = GENERATE(PixelLayout::yuv420, PixelLayout::yuv422, PixelLayout::yuv444);
  const bool full = GENERATE(false, true);
  struct Matrix {
    int code;
    double kr, kb;
  };
  const Matrix matrix = GENERATE(Matrix{1, 0.2126, 0.0722}, Matrix{6, 0.299, 0.114},
                                 Matrix{5, 0.299, 0.114}, Matrix{9, 0.2627, 0.0593});
  CAPTURE(static_cast<int>(layout), full, matrix.code);
  Scaler scaler;
  for (const std::array<int, 3> yuv :
       {std::array{81, 90, 240}, std::array{145, 54, 34}, std::array{41, 200, 110},
        std::array{235, 128, 128}, std::array{16, 128, 128}, std::array{120, 128, 128}}) {
    Frame frame = flat(layout, 34, 18, yuv);
    frame.full_range = full;
    frame.color.matrix = static_cast<std::uint8_t>(matrix.code);
    RgbImage image;
    scaler.to_rgb(frame, {}, image);
    const auto want = to_rgb(yuv, matrix.kr, matrix.kb, full);
    const auto got = pixel(image, 17, 9);
    CAPTURE(yuv[0], yuv[1], yuv[2], got[0], got[1], got[2]);
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(std::abs(got[c] - want[c]) <= 2.0);
  }
}

TEST_CASE("a matrix that is not said is the one players take") {
  Frame frame;
  frame.width = 720, frame.height = 576;
  CHECK(resolve_matrix(frame) == 6);
  frame.height = 577;
  CHECK(resolve_matrix(frame) == 1);
  frame.width = 1280, frame.height = 534;
  CHECK(resolve_matrix(frame) == 1);
  frame.full_range = true;
  CHECK(resolve_matrix(frame) == 5);
  frame.color.matrix = 1;
  CHECK(resolve_matrix(frame) == 1);
}

TEST_CASE("shrinking takes the mean of the area") {
  RgbImage image{8, 4, {}};
  for (int i = 0; i < 8 * 4 * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(i * 37));
  Scaler scaler;
  RgbImage small;
  scaler.to_rgb(to_frame(image), {.width = 4, .height = 2}, small);
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        double sum = 0;
        for (int dy = 0; dy < 2; ++dy)
          for (int dx = 0; dx < 2; ++dx)
            sum += pixel(image, 2 * x + dx, 2 * y + dy)[c];
        CHECK(std::abs(pixel(small, x, y)[c] - sum / 4) <= 2);
      }
}

TEST_CASE("RGB of the same size passes unchanged") {
  const RgbImage image = test_picture(37, 21);
  RgbImage same;
  Scaler scaler;
  scaler.to_rgb(to_frame(image), {}, same);
  CHECK(same.pixels == image.pixels);
}

TEST_CASE("crop and rotation are in upright coordinates") {
  // Four quarters of one colour each: red green / blue white.
  RgbImage image{20, 12, std::vector<std::uint8_t>(20 * 12 * 3)};
  const auto color = [](bool right, bool below) -> std::array<int, 3> {
    if (!below) return right ? std::array{0, 255, 0} : std::array{255, 0, 0};
    return right ? std::array{255, 255, 255} : std::array{0, 0, 255};
  };
  for (int y = 0; y < 12; ++y)
    for (int x = 0; x < 20; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        image.pixels[static_cast<std::size_t>(3 * (y * 20 + x)) + c] =
            static_cast<std::uint8_t>(color(x >= 10, y >= 6)[c]);
  const Frame frame = to_frame(image);
  Scaler scaler;
  for (const bool mirror : {false, true})
    for (const int degrees : {0, 90, 180, 270})
      for (const bool right : {false, true})
        for (const bool below : {false, true}) {
          // Where the shown corner comes from: undo the turn, then the flip.
          bool r = right, b = below;
          if (degrees == 90) r = below, b = !right;
          if (degrees == 180) r = !right, b = !below;
          if (degrees == 270) r = !below, b = right;
          if (mirror) r = !r;
          RgbImage out;
          scaler.to_rgb(frame,
                        {.rotation = degrees,
                         .mirror = mirror,
                         .crop_x = right ? 0.5 : 0.0,
                         .crop_y = below ? 0.5 : 0.0,
                         .crop_width = 0.5,
                         .crop_height = 0.5},
                        out);
          CAPTURE(mirror, degrees, right, below);
          CHECK(out.width == (degrees % 180 == 0 ? 10 : 6));
          CHECK(out.height == (degrees % 180 == 0 ? 6 : 10));
          CHECK(pixel(out, 0, 0) == color(r, b));
          CHECK(pixel(out, out.width - 1, out.height - 1) == color(r, b));
          const Frame turned = rotate_frame(frame, degrees, mirror);
          scaler.to_rgb(turned, {}, out);
          CHECK(pixel(out, right ? out.width - 1 : 0, below ? out.height - 1 : 0) == color(r, b));
        }
}

TEST_CASE("turning a frame only moves samples") {
  const auto layout =
      GENERATE(PixelLayout::yuv420, PixelLayout::yuv444, PixelLayout::gray, PixelLayout::rgb24);
  const Frame frame = busy(layout, 33, 19);
  for (const bool mirror : {false, true}) {
    Frame turned = rotate_frame(frame, 0, mirror);
    for (int i = 0; i < 4; ++i)
      turned = rotate_frame(turned, 90);
    CHECK(frame_hash(rotate_frame(turned, 0, mirror)) == frame_hash(frame));
  }
  CHECK(frame_hash(rotate_frame(rotate_frame(frame, 90), 270)) == frame_hash(frame));
  CHECK(frame_hash(rotate_frame(rotate_frame(frame, 180), 180)) == frame_hash(frame));
  const Frame quarter = rotate_frame(frame, 90);
  CHECK(quarter.width == 19);
  CHECK(quarter.height == 33);
  CHECK(quarter.pts == 5);
  CHECK(quarter.index == 3);
  // Clockwise: the top left corner goes to the top right.
  if (layout != PixelLayout::rgb24) CHECK(quarter.plane[0][18] == frame.plane[0][0]);
  CHECK_THROWS_AS(rotate_frame(frame, 45), vfm::Error);
}

TEST_CASE("a quarter turn of 4:2:2 keeps its chroma") {
  const Frame frame = busy(PixelLayout::yuv422, 33, 19);
  const Frame turned = rotate_frame(frame, 270);
  CHECK(turned.layout == PixelLayout::yuv444);
  for (int y = 0; y < 19; ++y)
    for (int x = 0; x < 33; ++x)
      CHECK(turned.plane[1][(32 - x) * turned.stride[1] + y] ==
            frame.plane[1][y * frame.stride[1] + x / 2]);
}

TEST_CASE("a frame's hash is of what is visible") {
  Frame frame = busy(PixelLayout::yuv420, 33, 19);
  Frame copy = copy_frame(frame);
  const std::string hash = frame_hash(frame);
  CHECK(hash.size() == 32);
  CHECK(frame_hash(copy) == hash);
  writable(copy, 0)[33] ^= 1;  // behind the row
  CHECK(frame_hash(copy) == hash);
  writable(copy, 2)[9 * copy.stride[2] + 16] ^= 1;  // the last sample of all
  CHECK(frame_hash(copy) != hash);
  frame.pts = 77;
  CHECK(frame_hash(frame) == hash);
}

TEST_CASE("impossible pictures are errors") {
  Scaler scaler;
  RgbImage image;
  CHECK_THROWS_AS(scaler.to_rgb(Frame{}, {}, image), vfm::Error);
  const Frame frame = busy(PixelLayout::gray, 8, 8);
  CHECK_THROWS_AS(scaler.to_rgb(frame, {.width = 4}, image), vfm::Error);
  CHECK_THROWS_AS(scaler.to_rgb(frame, {.width = -4, .height = -4}, image), vfm::Error);
  CHECK_THROWS_AS(make_frame(PixelLayout::gray, 0, 8), vfm::Error);
  CHECK_THROWS_AS(to_frame(RgbImage{4, 4, {1, 2, 3}}), vfm::Error);
  scaler.to_rgb(frame, {.crop_x = 5, .crop_y = 5, .crop_width = 0.001, .crop_height = 0.001},
                image);
  CHECK(image.width == 1);
  CHECK(image.height == 1);
}
