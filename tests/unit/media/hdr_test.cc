// HDR: frames of 10 bits through everything that stands between a decoder and an encoder, and what
// tone mapping makes of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "base/error.h"
#include "frame_hash.h"
#include "media/colour/resizer.h"
#include "media/colour/tone_map.h"
#include "media/decode/decoder.h"
#include "media/decode/deinterlace.h"
#include "media/encode/encoder.h"

namespace {

using namespace vfm;
using namespace vfm::media;

std::uint16_t get(const Frame& frame, int p, int x, int y) {
  std::uint16_t sample;
  std::memcpy(&sample, frame.plane[p] + std::ptrdiff_t{y} * frame.stride[p] + 2 * x, 2);
  return sample;
}

void put(Frame& frame, int p, int x, int y, int value) {
  const auto sample = static_cast<std::uint16_t>(value);
  std::memcpy(writable(frame, p) + std::ptrdiff_t{y} * frame.stride[p] + 2 * x, &sample, 2);
}

/// A 1000 cd/m2 screen with P3's colours, in BT.2020.
HdrMetadata some_metadata() {
  HdrMetadata hdr;
  hdr.screen = {34000, 16000, 13250, 34500, 7500, 3000, 15635, 16450};
  hdr.max_luminance = 10'000'000;
  hdr.min_luminance = 50;
  hdr.max_light = 800;
  hdr.max_frame_light = 300;
  return hdr;
}

/// Luma rises from left to right over all codes of limited range, chroma from top to bottom.
Frame ramp(int width, int height) {
  Frame frame = make_frame(PixelLayout::yuv420p10, width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      put(frame, 0, x, y, 64 + 876 * x / (width - 1));
  for (int p = 1; p < 3; ++p)
    for (int y = 0; y < (height + 1) / 2; ++y)
      for (int x = 0; x < (width + 1) / 2; ++x)
        put(frame, p, x, y, 480 + 40 * p + y);
  frame.color = {9, 16, 9};
  frame.hdr = some_metadata();
  frame.duration = 1;
  return frame;
}

Frame flat(int luma, int u, int v, const Color& color) {
  Frame frame = make_frame(PixelLayout::yuv420p10, 4, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      put(frame, 0, x, y, luma);
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 2; ++x)
      put(frame, 1, x, y, u), put(frame, 2, x, y, v);
  frame.color = color;
  return frame;
}

int luma_of(const Frame& frame) {
  return ToneMapper().map(frame).plane[0][0];
}

std::size_t levels(const Frame& frame) {
  std::set<int> found;
  for (int x = 0; x < frame.width; ++x)
    found.insert(get(frame, 0, x, frame.height / 2));
  return found.size();
}

EncodeOptions deep_options(const std::string& encoder, int width, int height) {
  EncodeOptions o;
  o.encoder = encoder;
  o.bit_depth = 10;
  o.quality = 4;
  o.width = width;
  o.height = height;
  o.time_base = {1, 25};
  o.frame_rate = {25, 1};
  return o;
}

}  // namespace

TEST_CASE("every encoder of 10 bits keeps HDR: samples, colours, metadata") {
  const Frame frame = ramp(1024, 64);
  REQUIRE(!ten_bit_encoders().empty());
  for (const std::string& name : ten_bit_encoders()) {
    CAPTURE(name);
    VideoEncoder encoder(deep_options(name, 1024, 64));
    Frame second = frame;
    second.pts = 1;
    encoder.add(frame);
    encoder.add(second);
    const std::string mp4 = encoder.finish();
    CHECK(mp4.find("x264 - core") == std::string::npos);
    Decoder decoder(mp4, "clip", {.keep_hdr = true});
    CHECK(decoder.info().is_hdr());
    CHECK(decoder.info().bit_depth == 10);
    Frame back;
    REQUIRE(decoder.next(back));
    CHECK(back.layout == PixelLayout::yuv420p10);
    CHECK(back.color == Color{9, 16, 9});
    CHECK_FALSE(back.full_range);
    // AV1's own units are coarser.
    if (name != "libsvtav1") CHECK(back.hdr.screen == frame.hdr.screen);
    CHECK(back.hdr.max_luminance == frame.hdr.max_luminance);
    CHECK(back.hdr.max_light == 800);
    CHECK(back.hdr.max_frame_light == 300);
    CHECK(levels(back) > 600);
    int most = 0;
    for (int x = 0; x < 1024; ++x)
      most = std::max(most, std::abs(get(back, 0, x, 32) - get(frame, 0, x, 32)));
    CHECK(most < 12);
    REQUIRE(decoder.next(back));
    CHECK_FALSE(decoder.next(back));
    // Who does not ask for HDR gets what an SDR screen shows.
    Decoder plain(mp4, "clip");
    REQUIRE(plain.next(back));
    CHECK(back.layout == PixelLayout::yuv420);
    CHECK(back.color == Color{1, 1, 1});
  }
}

TEST_CASE("10 bits are asked for, and not mixed with 8") {
  const auto usage = [](const EncodeOptions& options) {
    try {
      VideoEncoder encoder(options);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(usage(deep_options("mpeg4", 64, 48)),
             Catch::Contains("encoder 'mpeg4' does not take the 10 bits of HDR (those that do: "));
  EncodeOptions nine = deep_options("ffv1", 64, 48);
  nine.bit_depth = 9;
  CHECK_THAT(usage(nine), Catch::Contains("9 bits"));
  VideoEncoder deep(deep_options("ffv1", 64, 48));
  deep.add(ramp(64, 48));
  Frame sdr = make_frame(PixelLayout::yuv420, 64, 48);
  sdr.pts = 1;
  CHECK_THROWS_WITH(deep.add(sdr), "the frame at pts 1 is SDR, the clip is not");
  const std::string name = default_ten_bit_encoder();
  const auto all = ten_bit_encoders();
  CHECK(std::find(all.begin(), all.end(), name) != all.end());
}

TEST_CASE("frames of 10 bits are cut, turned and scaled as such") {
  const Frame frame = ramp(1024, 64);
  const Frame part = crop_frame(frame, {100, 10, 200, 20});
  CHECK(get(part, 0, 3, 4) == get(frame, 0, 103, 14));
  CHECK(get(part, 2, 3, 4) == get(frame, 2, 53, 9));
  const Frame turned = rotate_frame(frame, 90);
  CHECK(turned.width == 64);
  CHECK(get(turned, 0, 5, 700) == get(frame, 0, 700, 58));
  CHECK(get(turned, 1, 5, 300) == get(frame, 1, 300, 26));
  CHECK(turned.hdr == frame.hdr);
  const Frame copy = copy_frame(frame);
  CHECK(frame_hash(copy) == frame_hash(frame));
  const Frame small = Resizer(700, 32).resize(frame);
  CHECK(small.layout == PixelLayout::yuv420p10);
  CHECK(small.color == frame.color);
  CHECK(small.hdr == frame.hdr);
  CHECK(levels(small) > 600);
  for (const int x : {50, 350, 650})
    CHECK(std::abs(get(small, 0, x, 16) - (64 + 876 * (x + 0.5) / 700)) < 2);
  CHECK(std::abs(get(small, 2, 350, 8) - (560 + 16)) < 3);
}

TEST_CASE("interlaced frames of 10 bits become what those of 8 become") {
  // Two frames of moving stripes, in both depths.
  const auto value = [](int x, int y, int t) { return 16 + (x * 7 + y * 5 + t * 31) % 200; };
  Frame deep[2], plain[2];
  for (int t = 0; t < 2; ++t) {
    deep[t] = make_frame(PixelLayout::yuv420p10, 32, 16);
    plain[t] = make_frame(PixelLayout::yuv420, 32, 16);
    deep[t].top_first = plain[t].top_first = true;
    for (int p = 0; p < 3; ++p)
      for (int y = 0; y < plane_rows(plain[t], p); ++y)
        for (int x = 0; x < plane_row_bytes(plain[t], p); ++x) {
          put(deep[t], p, x, y, 4 * value(x, y, t));
          writable(plain[t], p)[y * plain[t].stride[p] + x] =
              static_cast<std::uint8_t>(value(x, y, t));
        }
  }
  const Frame a = deinterlace(&deep[0], deep[1], nullptr);
  const Frame b = deinterlace(&plain[0], plain[1], nullptr);
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < plane_rows(b, p); ++y)
      for (int x = 0; x < plane_row_bytes(b, p); ++x)
        REQUIRE(std::abs(get(a, p, x, y) - 4 * b.plane[p][y * b.stride[p] + x]) <= 6);
}

TEST_CASE("tone mapping goes by the peak that the metadata tell") {
  Frame frame = flat(640, 512, 512, {9, 16, 9});
  CHECK(ToneMap::kind_of(frame).peak == 1000);
  const int by_default = luma_of(frame);
  frame.hdr.max_luminance = 40'000'000;
  CHECK(ToneMap::kind_of(frame).peak == 4000);
  const int by_screen = luma_of(frame);
  CHECK(by_screen < by_default);
  frame.hdr.max_light = 600;
  CHECK(ToneMap::kind_of(frame).peak == 600);
  CHECK(luma_of(frame) >= by_default);
  frame.color.transfer = 18;
  CHECK(ToneMap::kind_of(frame).peak == 1000);
}

TEST_CASE("SDR in BT.2020's colours becomes BT.709's") {
  const Color wide{9, 14, 9};
  // Grey is the same grey.
  for (int luma = 64; luma <= 940; luma += 73)
    CHECK(std::abs(luma_of(flat(luma, 512, 512, wide)) - luma / 4.0) <= 1);
  // A picture of this light, BT.709's red, green and blue of 0 to 1, is off by so much at most.
  const auto error_of = [&](double r, double g, double b) {
    const auto signal = [](double light) { return std::pow(light, 1 / 2.4); };
    const auto code = [](double at, double range) {
      return static_cast<int>(std::lround(at * range));
    };
    const double wr = signal(0.6274 * r + 0.3293 * g + 0.0433 * b);
    const double wg = signal(0.0691 * r + 0.9195 * g + 0.0114 * b);
    const double wb = signal(0.0164 * r + 0.0880 * g + 0.8956 * b);
    const double wy = 0.2627 * wr + 0.6780 * wg + 0.0593 * wb;
    const Frame got = ToneMapper().map(flat(64 + code(wy, 876), 512 + code((wb - wy) / 1.8814, 896),
                                            512 + code((wr - wy) / 1.4746, 896), wide));
    r = signal(r), g = signal(g), b = signal(b);
    const double y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return std::max({std::abs(got.plane[0][0] - (16 + 219 * y)),
                     std::abs(got.plane[1][0] - (128 + 224 * (b - y) / 1.8556)),
                     std::abs(got.plane[2][0] - (128 + 224 * (r - y) / 1.5748))});
  };
  CHECK(error_of(0.5, 0.2, 0.1) < 2);
  CHECK(error_of(0.1, 0.4, 0.2) < 2);
  CHECK(error_of(0.6, 0.6, 0.3) < 2);
  // The grid is coarse where a colour has nothing of another.
  CHECK(error_of(1, 0, 0) < 12);
  CHECK(is_wide_sdr(14, 9));
  CHECK_FALSE(is_wide_sdr(16, 9));
  CHECK_FALSE(is_wide_sdr(1, 1));
  CHECK_FALSE(is_wide_sdr(2, 9));
}
