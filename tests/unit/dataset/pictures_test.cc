// Small pictures of clips for a page, and where they stand in it.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dataset/clip_picture.h"
#include "dataset_run.h"
#include "media/container/picture_file.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "shard/image_header.h"
#include "support/parts.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

std::string grey_png(int width, int height, int grey) {
  return media::encode_png({width, height,
                            std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height),
                                                      static_cast<std::uint8_t>(grey))});
}

/// Each frame is two lighter than the one before.
std::string brightening(int frames) {
  media::EncodeOptions options;
  options.encoder = "mpeg4";
  options.width = 64, options.height = 48;
  options.time_base = {1, 25}, options.frame_rate = {25, 1};
  media::VideoEncoder encoder(options);
  for (int i = 0; i < frames; ++i)
    encoder.add(
        {64, 48, std::vector<std::uint8_t>(64 * 48 * 3, static_cast<std::uint8_t>(20 + 2 * i))}, i);
  return encoder.finish();
}

int grey_of(const std::string& jpeg) {
  media::Decoder decoder(jpeg, "picture.jpg");
  media::Frame frame;
  REQUIRE(decoder.next(frame));
  media::RgbImage image;
  media::Scaler().to_rgb(frame, {}, image);
  return image.pixels.at(image.pixels.size() / 2);
}

}  // namespace

TEST_CASE("the picture of a clip fits into 192 x 144, with even sides, and is not enlarged") {
  const auto size = [](int width, int height) {
    const std::string jpeg = clip_picture(grey_png(width, height, 90), "a.png");
    const auto header = shard::read_image_header(jpeg);
    REQUIRE(header);
    CHECK(header->format == "JPEG");
    CHECK(grey_of(jpeg) == Approx(90).margin(3));
    return std::pair(header->width, header->height);
  };
  using Size = std::pair<int, int>;
  CHECK(size(640, 360) == Size{192, 108});
  CHECK(size(90, 160) == Size{80, 144});
  CHECK(size(192, 144) == Size{192, 144});
  CHECK(size(100, 51) == Size{100, 50});
  CHECK(size(400, 2) == Size{192, 2});
  CHECK_THROWS_AS(clip_picture("no clip", "a.mp4"), Error);
}

TEST_CASE("the picture of a clip is its middle frame, of a long one the 48th after the first") {
  const auto shown = [](int frames) { return grey_of(clip_picture(brightening(frames), "a.mp4")); };
  CHECK(shown(1) == Approx(20).margin(1.5));
  CHECK(shown(3) == Approx(22).margin(1.5));
  CHECK(shown(20) == Approx(40).margin(1.5));
  CHECK(shown(110) == Approx(20 + 2 * 48).margin(1.5));
}

TEST_CASE("a page has the picture of each sample once, and says nothing of what does not decode") {
  DatasetRun run;
  const std::string png = grey_png(32, 16, 200);
  run.add("in", {{"a", {{"png", png}, {"json", R"({"q":1})"}}},
                 {"b", {{"mp4", "damaged"}, {"json", R"({"q":2})"}}},
                 {"c", {{"png", grey_png(16, 16, 30)}, {"json", R"({"q":3})"}}},
                 {"d", {{"wav", png + "more"}, {"json", R"({"q":4})"}}}});
  run.options.report = run.folder / "page.html";
  run.level = LogLevel::info;
  CHECK(run.run() == 0);
  const std::string page = run.text("page.html");
  const auto count = [&](const std::string& part) { return count_of(page, part); };
  CHECK(count("data:image/jpeg;base64,") == 2);
  CHECK(count(".pic.p0 {") == 1);
  CHECK(count(".pic.p1 {") == 1);
  CHECK(count(R"(class="pic p0" role="img" aria-label="a")") +
            count(R"(class="pic p1" role="img" aria-label="a")") ==
        2);
  CHECK(count(R"(class="pic p0" role="img" aria-label="c")") +
            count(R"(class="pic p1" role="img" aria-label="c")") ==
        2);
  CHECK(count(R"(class="pic" role="img" aria-label="b")") == 2);
  CHECK(count(R"(class="pic" role="img" aria-label="d")") == 2);
  CHECK(run.log.find("no picture of b: ") != std::string::npos);
  CHECK(run.log.find("no picture of d: ") == std::string::npos);
}
