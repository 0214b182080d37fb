// PNG, JPEG, Y4M and the version text.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"
#include "media/container/picture_file.h"
#include "media/container/y4m.h"
#include "media/decode/decoder.h"
#include "media/version.h"
#include "media_files.h"
#include "test_picture.h"

using namespace vfm::media;

namespace {

RgbImage read_back(const std::string& bytes) {
  Decoder decoder(bytes, "picture");
  CHECK(decoder.info().image);
  Frame frame;
  REQUIRE(decoder.next(frame));
  RgbImage image;
  Scaler().to_rgb(frame, {}, image);
  return image;
}

}  // namespace

TEST_CASE("PNG is lossless") {
  for (const int width : {1, 2, 37, 96}) {
    const RgbImage image = test_picture(width, 21);
    const std::string png = encode_png(image);
    CHECK(png.substr(1, 3) == "PNG");
    CHECK(read_back(png).pixels == image.pixels);
    CHECK(encode_png(image) == png);
  }
  CHECK_THROWS_AS(encode_png(RgbImage{}), vfm::Error);
}

TEST_CASE("Y4M is what ffmpeg reads") {
  NEED_FFMPEG();
  const auto chroma = GENERATE(Y4mChroma::yuv444, Y4mChroma::yuv420);
  std::string bytes;
  Y4mWriter writer([&](std::string_view part) { bytes += part; }, 97, 61, {24000, 1001}, chroma);
  for (int i = 0; i < 3; ++i)
    writer.add(test_picture(97, 61, i));
  CHECK(bytes.substr(0, 40).find("YUV4MPEG2 W97 H61 F24000:1001 Ip A1:1 C4") == 0);
  media_files::write(media_files::path("video.y4m"), bytes);
  const std::string raw = media_files::raw_frames(media_files::path("video.y4m"), "v:0", "rgb24");
  REQUIRE(raw.size() == 3 * 97 * 61 * 3);
  RgbImage image{97, 61, {}};
  image.pixels.assign(raw.begin() + 97 * 61 * 3, raw.begin() + 2 * 97 * 61 * 3);
  CHECK(psnr(image, test_picture(97, 61, 1)) > (chroma == Y4mChroma::yuv444 ? 45 : 33));
  Decoder decoder(media_files::path("video.y4m"));
  Frame frame;
  REQUIRE(decoder.next(frame));
  CHECK_FALSE(frame.full_range);
  CHECK(decoder.info().frame_rate == vfm::Rational{24000, 1001});
  CHECK_THROWS_AS(writer.add(test_picture(96, 61)), vfm::Error);
}

TEST_CASE("the version names FFmpeg's libraries and licence") {
  const std::string text = ffmpeg_version();
  for (const char* part : {"FFmpeg ", "libavformat ", "libavcodec ", "libswscale ", "GPL version"})
    CHECK_THAT(text, Catch::Contains(part));
}
