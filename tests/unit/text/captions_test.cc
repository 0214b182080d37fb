// SPDX-License-Identifier: Apache-2.0
#include "text/captions.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"

using vfm::Json;
using vfm::text::caption_of_span;
using vfm::text::captions_of_json;
using vfm::text::Cue;
using vfm::text::parse_srt;

TEST_CASE("an ordinary srt") {
  const auto srt = parse_srt(
      "1\n00:00:00,000 --> 00:00:01,500\na red circle\nmoves left\n\n"
      "2\n00:00:01,500 --> 00:01:03,250\n<i>a <b>blue</b></i> {\\an8}square\n");
  REQUIRE(srt.cues.size() == 2);
  CHECK(srt.malformed == 0);
  CHECK(srt.cues[0].begin == 0);
  CHECK(srt.cues[0].end == 1.5);
  CHECK(srt.cues[0].caption == "a red circle moves left");
  CHECK(srt.cues[1].end == 63.25);
  CHECK(srt.cues[1].caption == "a blue square");
}

TEST_CASE("srt as found in the wild") {
  SECTION("line ends, no numbers, points, short times, settings") {
    const auto srt = parse_srt(
        "00:01.5 --> 00:02.25 X1:10 Y1:20\r\none\r\n\r\n\r\n02:03:04,5-->02:03:05,000\rtwo\r");
    REQUIRE(srt.cues.size() == 2);
    CHECK(srt.cues[0].begin == 1.5);
    CHECK(srt.cues[0].caption == "one");
    CHECK(srt.cues[1].begin == 2 * 3600 + 3 * 60 + 4.5);
    CHECK(srt.cues[1].caption == "two");
  }
  SECTION("no blank line between cues, and text that is a number") {
    const auto srt =
        parse_srt("1\n00:00:01,0 --> 00:00:02,0\n1984\n2\n00:00:02,0 --> 00:00:03,0\nx");
    REQUIRE(srt.cues.size() == 2);
    CHECK(srt.cues[0].caption == "1984");
    CHECK(srt.cues[1].caption == "x");
  }
  SECTION("a blank line in a cue, an empty cue, cues out of order") {
    const auto srt =
        parse_srt("2\n00:00:05,0 --> 00:00:06,0\nlate\n\nr\n\n1\n00:00:01,0 --> 00:00:02,0\n\n");
    REQUIRE(srt.cues.size() == 2);
    CHECK(srt.cues[0].begin == 1);
    CHECK(srt.cues[0].caption.empty());
    CHECK(srt.cues[1].caption == "late r");
  }
  SECTION("angle brackets and braces that are no tags") {
    const auto srt = parse_srt("00:00:01,0 --> 00:00:02,0\n1 < 2 {so} <3 and <unclosed");
    CHECK(srt.cues.at(0).caption == "1 < 2 {so} <3 and <unclosed");
  }
}

TEST_CASE("malformed cues are counted and skipped") {
  const auto srt = parse_srt(
      "1\n00:00:0x,0 --> 00:00:02,0\nlost\n\n2\n00:00:03,0 --> 00:00:02,0\nbackwards\n\n"
      "3\n1:2:3:4 --> 5\nlost\n\n4\n99999999999:00:00 --> 1:0\nlost\n\n5\n0:0,0 --> \nlost\n\n"
      "6\n00:00:07,0 --> 00:00:08,0\nkept\n");
  CHECK(srt.malformed == 5);
  REQUIRE(srt.cues.size() == 1);
  CHECK(srt.cues[0].caption == "kept");
  CHECK(parse_srt("").cues.empty());
  CHECK(parse_srt("no times at all\n\n-->\n").cues.empty());
  CHECK(parse_srt(std::string(100'000, '>')).cues.empty());
  CHECK(parse_srt("00:00:01,0 --> 00:00:02,0\n" + std::string(100'000, '<')).cues.size() == 1);
}

// Were an end looked for from each beginning, this would take long.
TEST_CASE("tags without an end are text, however many") {
  const auto caption_of = [](const std::string& text) {
    return parse_srt("1\n00:00:00,000 --> 00:00:01,000\n" + text).cues.at(0).caption;
  };
  CHECK(caption_of("<b>a</b> <c {\\d} {\\e") == "a <c {\\e");
  std::string many;
  for (int i = 0; i < 300'000; ++i)
    many += "<a{\\";
  CHECK(caption_of(many) == many);
}

TEST_CASE("a span gets the cues that belong to it") {
  const std::vector<Cue> cues = {{0, 2, "one"}, {2, 4, "two"}, {4, 4.5, "three"}, {10, 20, "long"}};
  CHECK(caption_of_span(cues, 0, 2) == "one");
  CHECK(caption_of_span(cues, 0.1, 2.1) == "one");  // two leaks in by 5 %
  CHECK(caption_of_span(cues, 2, 5) == "two three");
  CHECK(caption_of_span(cues, 0, 100) == "one two three long");
  CHECK(caption_of_span(cues, 12, 13) == "long");
  CHECK(caption_of_span(cues, 9, 10.2) == std::nullopt);
  CHECK(caption_of_span(cues, 5, 9) == std::nullopt);
  CHECK(caption_of_span({}, 0, 9) == std::nullopt);
  CHECK(caption_of_span({{3, 3, "point"}}, 2, 4) == "point");
  CHECK(caption_of_span({{3, 3, "point"}}, 3.5, 4) == std::nullopt);
  CHECK(caption_of_span({{0, 2, ""}}, 0, 2) == "");
}

TEST_CASE("captions of JSON") {
  CHECK(caption_of_span(captions_of_json(Json("  a\nfox "), "x"), 3, 4) == "a fox");
  CHECK(caption_of_span(captions_of_json({{"caption", "fox"}}, "x"), 3, 4) == "fox");
  const Json list = Json::parse(
      R"([{"start":2,"end":4,"caption":"b"},{"start":0,"end":2,"caption":"a"},{"caption":"all"}])");
  CHECK(caption_of_span(captions_of_json(list, "x"), 2, 4) == "all b");
  CHECK(caption_of_span(captions_of_json({{"captions", list}}, "x"), 0, 2) == "a all");
  // Texts alone are captions of one video: the first that says something.
  CHECK(caption_of_span(captions_of_json(Json::parse(R"(["", " a ", "b"])"), "x"), 3, 4) == "a");
  CHECK(caption_of_span(captions_of_json(Json::parse(R"({"captions":["a"]})"), "x"), 0, 1) == "a");
  for (const char* bad : {"3", "null", "{}", R"({"caption":3})", R"([1])", R"(["a",1])",
                          R"([{"start":0}])", R"([{"start":2,"end":1,"caption":"x"}])",
                          R"({"captions":"x"})", R"([{"start":"0","caption":"x"}])"})
    CHECK_THROWS_AS(captions_of_json(Json::parse(bad), "x"), vfm::Error);
}
