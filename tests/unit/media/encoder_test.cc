// SPDX-License-Identifier: Apache-2.0
#include "media/encoder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "media/decoder.h"

namespace {

using namespace vfm;
using namespace vfm::media;

// A smooth picture that moves with `t`, so that frames differ and codecs keep it well.
RgbImage picture(int width, int height, int t) {
  RgbImage image{width, height, {}};
  image.pixels.resize(static_cast<std::size_t>(3 * width * height));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = &image.pixels[static_cast<std::size_t>(3 * (y * width + x))];
      p[0] = static_cast<std::uint8_t>(128 + 90 * std::sin(0.1 * (x + 2 * t)));
      p[1] = static_cast<std::uint8_t>(128 + 90 * std::sin(0.07 * (y + t)));
      p[2] = static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * (x + y)));
    }
  return image;
}

double psnr(const RgbImage& a, const RgbImage& b) {
  REQUIRE(a.pixels.size() == b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    const double d = static_cast<double>(a.pixels[i]) - b.pixels[i];
    sum += d * d;
  }
  const double mse = sum / static_cast<double>(a.pixels.size());
  return mse == 0 ? 99 : 10 * std::log10(255 * 255 / mse);
}

EncodeOptions options_for(const std::string& encoder, int width, int height) {
  EncodeOptions o;
  o.encoder = encoder;
  o.width = width;
  o.height = height;
  o.time_base = {1, 1000};
  o.frame_rate = {25, 1};
  return o;
}

}  // namespace

TEST_CASE("encoder round trip keeps frames, times and pictures") {
  // Irregular times: every gap must come back.
  const std::vector<std::int64_t> times{100, 140, 181, 300, 301, 2000, 2040, 2077};
  for (const std::string& name : available_encoders()) {
    if (name == "h264_nvenc") continue;
    DYNAMIC_SECTION(name) {
      Encoder encoder(options_for(name, 96, 64));
      for (std::size_t i = 0; i < times.size(); ++i) {
        Frame frame = to_frame(picture(96, 64, static_cast<int>(i)));
        frame.pts = times[i];
        frame.duration = 55;
        encoder.add(frame);
      }
      const std::string mp4 = encoder.finish();
      CHECK(mp4.find("moov") < mp4.find("mdat"));
      Decoder decoder(mp4, "clip");
      CHECK(decoder.info().width == 96);
      Scaler scaler;
      Frame frame;
      std::size_t n = 0;
      while (decoder.next(frame)) {
        REQUIRE(n < times.size());
        const double unit = decoder.info().time_base.value() * 1000;
        CHECK(static_cast<double>(frame.pts) * unit == Approx(static_cast<double>(times[n] - 100)));
        const auto gap = n + 1 < times.size() ? times[n + 1] - times[n] : 55;
        CHECK(static_cast<double>(frame.duration) * unit == Approx(static_cast<double>(gap)));
        RgbImage back;
        scaler.to_rgb(frame, {}, back);
        CHECK(psnr(back, picture(96, 64, static_cast<int>(n))) > 28);
        ++n;
      }
      CHECK(n == times.size());
      CHECK(decoder.corrupt() == 0);
    }
  }
}
