// Sizes and rates of clips, names, times of spans, black bars.
// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/shape.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "clip/lists/spans.h"
#include "clip/store/names.h"
#include "curate/measures/bars.h"
#include "shard/sample.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

/// The source's frames that `rate` shows, by their pts.
std::vector<std::int64_t> shown(Rational rate, Rational base,
                                const std::vector<std::pair<std::int64_t, std::int64_t>>& frames) {
  FrameClock clock(rate, base);
  std::vector<std::int64_t> seen;
  for (const auto& [pts, duration] : frames) {
    media::Frame frame;
    frame.pts = pts;
    frame.duration = duration;
    frame.index = pts;
    for (const media::Frame& out : clock.push(frame)) {
      CHECK(out.pts == static_cast<std::int64_t>(seen.size()));
      seen.push_back(out.index);
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("a constant rate shows what is on the screen, for the length of the clip") {
  using Times = std::vector<std::int64_t>;
  const std::vector<std::pair<std::int64_t, std::int64_t>> four = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};
  CHECK(shown({24, 1}, {1, 24}, four) == Times{0, 1, 2, 3});
  CHECK(shown({12, 1}, {1, 24}, four) == Times{0, 2});
  CHECK(shown({48, 1}, {1, 24}, four) == Times{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(shown({1, 1}, {1, 24}, four) == Times{0});  // never none
  // Variable: the second frame stands for ten ticks. Length 12 ticks of 1/24 s: six of 1/12 s.
  CHECK(shown({12, 1}, {1, 24}, {{100, 1}, {101, 10}, {111, 1}}) ==
        Times{100, 101, 101, 101, 101, 101});
  // 5 ticks are 2.5 frames of 1/12 s: rounded up; 4.9 would be down.
  CHECK(shown({12, 1}, {1, 24}, {{0, 5}}).size() == 3);
  CHECK(shown({12, 1}, {1, 240}, {{0, 49}}).size() == 2);
}

TEST_CASE("sizes of clips") {
  CHECK(parse_clip_size("640x480").of(1920, 1080) == std::pair(640, 480));
  CHECK(parse_clip_size("640x-2").of(1920, 1080) == std::pair(640, 360));
  CHECK(parse_clip_size("-2x480").of(1920, 1080) == std::pair(854, 480));
  CHECK(parse_clip_size("short:480").of(1920, 1080) == std::pair(854, 480));
  CHECK(parse_clip_size("short:480").of(1080, 1920) == std::pair(480, 854));
  CHECK(parse_clip_size("640x-2").of(1, 100000).second == 16384);
  for (const char* wrong : {"", "640", "x", "640x", "-2x-2", "0x480", "-1x480", "640x480x1",
                            "short:", "short:-2", "20000x20", "640 x 480"})
    CHECK_THROWS_AS(parse_clip_size(wrong), Error);
  CHECK(parse_clip_rate("23.976") == Rational{24000, 1001});
  CHECK(parse_clip_rate("25") == Rational{25, 1});
  CHECK(parse_clip_rate("30000/1001") == Rational{30000, 1001});
  for (const char* wrong : {"", "0", "-1", "nan", "inf", "24fps", "1/0", "/", "2000"})
    CHECK_THROWS_AS(parse_clip_rate(wrong), Error);
  CHECK(parse_clip_rate("0.01") == Rational{10, 1000});
  CHECK(parse_clip_rate("1000") == Rational{1000, 1});
  CHECK(parse_clip_rate("1/100") == Rational{1, 100});
  CHECK(parse_clip_rate("1000000/1000") == Rational{1000000, 1000});
  for (const char* wrong : {"1/101", "1001/1", "1000001/1001", "1000000/1000001", "0/1", "-1/-1",
                            "1/1x", "0.0099", "1000.1"})
    CHECK_THROWS_AS(parse_clip_rate(wrong), Error);
  CHECK(parse_clip_size("2x16384").of(5, 5) == std::pair(2, 16384));
  CHECK(parse_clip_size("short:480").of(500, 500) == std::pair(480, 480));
  CHECK(parse_clip_size("-2x3").of(0, 100) == std::pair(2, 3));
  CHECK(parse_clip_size("640x-2").text() == "640x-2");
  CHECK(parse_clip_size("short:480").text() == "short:480");
  CHECK_FALSE(ClipSize().any());
  for (const char* wrong : {"1x2", "2x1", "16385x2", "short:1", "short:16385"})
    CHECK_THROWS_AS(parse_clip_size(wrong), Error);
}

TEST_CASE("times of spans") {
  const Rational ntsc{30000, 1001};
  CHECK(parse_span_time("90.25").place(5, ntsc) == 90.25);
  CHECK(parse_span_time("00:01:30.25").place(5, ntsc) == 90.25);
  CHECK(parse_span_time("01:30").place(5, ntsc) == 90);
  CHECK(parse_span_time("00:01:00:02").place(5, ntsc) == 1802);
  // Drop frame: 00:01:00;02 is the frame after 00:00:59;29, and ten minutes lose 18 numbers.
  CHECK(parse_span_time("00:01:00;02").place(5, ntsc) == 1800);
  CHECK(parse_span_time("00:10:00;00").place(5, ntsc) == 17982);
  CHECK(parse_span_time("-0.5").place(5, ntsc) == -0.5);
  for (const char* wrong : {"", "soon", "1:-2", "1:2:3:4:5", "00:00:01:1.5", "nan", "1e300", "1;2"})
    CHECK_THROWS_AS(parse_span_time(wrong), Error);
}

TEST_CASE("readable names are keys") {
  const Span span{1500, 3000, {1, 1000}};
  const std::string hash = "1a2b3c4d5e6f";
  CHECK(readable_key("raw/My film.mp4", span, hash) ==
        "My_film-00h00m01s500-00h00m03s000-1a2b3c4d");
  CHECK(readable_key("https://a.b/c.mp4?x=/d.y", hash) == "c-1a2b3c4d");
  CHECK(readable_key("a.mp4", {-1500, -4, {1, 10000}}, hash) ==
        "a-m00h00m00s150-00h00m00s000-1a2b3c4d");
  CHECK(readable_key("a.mp4", {-7261500, 7322004, {1, 1000}}, hash) ==
        "a-m02h01m01s500-02h02m02s004-1a2b3c4d");
  CHECK(readable_key("a.b#c.mp4", hash) == "a_b_c-1a2b3c4d");
  CHECK(readable_key("http://x/a.b#c.mp4", hash) == "a-1a2b3c4d");
  CHECK(readable_key("__a--b__ c.mp4", hash) == "_a--b__c-1a2b3c4d");
  CHECK(readable_key("_ a", hash) == "_a-1a2b3c4d");
  CHECK(readable_key("?.mp4", hash) == "video-1a2b3c4d");
  CHECK(readable_key(std::string(71, 'x'), hash) == std::string(71, 'x') + "-1a2b3c4d");
  CHECK(readable_key(std::string(72, 'x'), hash) == std::string(71, 'x') + "-1a2b3c4d");
  const std::string long_name(200, 'x');
  for (const std::string& path :
       {std::string("__.mp4"), std::string("\xE6\x98\xA0.mkv"), std::string(".mp4"),
        std::string("..mp4"), std::string("_ _.mp4"), long_name}) {
    const std::string key = readable_key(path, span, hash);
    CHECK(shard::valid_key(key));
    CHECK(key.size() <= 80);
    CHECK(key.ends_with("-1a2b3c4d"));
  }
}

TEST_CASE("bars are what is black in every frame") {
  media::Frame frame = media::make_frame(media::PixelLayout::gray, 64, 48);
  const auto fill = [&](int y0, int y1, int x0, int x1, int value) {
    for (int y = y0; y < y1; ++y)
      std::memset(media::writable(frame, 0) + y * frame.stride[0] + x0, value,
                  static_cast<std::size_t>(x1 - x0));
  };
  curate::BarFinder finder;
  finder.add(frame);  // black all over
  CHECK_FALSE(finder.picture());
  fill(7, 40, 0, 64, 128);
  finder.add(frame);
  CHECK(finder.picture() == media::Rectangle{0, 8, 64, 32});
  fill(0, 48, 0, 64, 0);
  fill(4, 6, 20, 30, 200);  // a word in the upper bar
  finder.add(frame);
  CHECK(finder.picture() == media::Rectangle{0, 4, 64, 36});
  fill(0, 48, 0, 64, 128);
  finder.add(frame);
  CHECK_FALSE(finder.picture());
  // A spot in the dark is no picture.
  curate::BarFinder spot;
  fill(0, 48, 0, 64, 0);
  fill(20, 24, 30, 34, 255);
  spot.add(frame);
  CHECK_FALSE(spot.picture());
}
