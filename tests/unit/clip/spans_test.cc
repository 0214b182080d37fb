// Lists of spans in their formats: what each line gives, whose it is, and in which pass it is cut.
// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/spans.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

using Lines = std::vector<std::string>;

std::string time_of(const SpanTime& time) {
  using Unit = SpanTime::Unit;
  switch (time.unit) {
    case Unit::container:
      return vfm::format("{}s", time.seconds);
    case Unit::video:
      return vfm::format("v{}s", time.seconds);
    case Unit::frame:
      return vfm::format("f{}", time.frames);
    case Unit::timecode:
      return vfm::format("{}s{}{}f", time.seconds, time.drop ? ";" : ":", time.frames);
    default:
      return "end";
  }
}

/// Spans and faults of one file, by the numbers of their lines.
class SpanList {
 public:
  SpanList(const std::string& name, std::string_view text, const std::string& only_input = "")
      : path_(folder_ / name) {
    folder_.write(name, text);
    spans_.emplace(std::vector<std::string>{path_}, only_input, [&](const io::Fault& fault) {
      CHECK(fault.cause == (fault.input == path_ ? Cause::missing : Cause::line));
      faults.push_back(short_place(fault.input) + fault.message);
    });
  }

  Lines of(const std::string& video) {
    Lines lines;
    const std::vector<GivenSpan>* found = spans_->take(video);
    if (!found) return {"none"};
    for (const GivenSpan& span : *found) {
      const std::string fields = dump_json(span.fields);
      lines.push_back(short_place(span.where) + time_of(span.begin) + " to " + time_of(span.end) +
                      (fields == "{}" ? "" : " " + fields));
    }
    return lines;
  }
  Lines left() const { return spans_->left(); }
  /// Of what the file named without a folder.
  GivenSpans& spans() { return *spans_; }

  Lines faults;

 private:
  /// "3: " for "line 3 of 'PATH'".
  std::string short_place(std::string_view where) const {
    if (where == path_) return "file: ";
    CHECK(where.ends_with(" of '" + path_ + "'"));
    return std::string(where.substr(5, where.find(" of ") - 5)) + ": ";
  }

  TemporaryFolder folder_;
  std::string path_;
  std::optional<GivenSpans> spans_;
};

}  // namespace

TEST_CASE("spans in JSON have times of each unit, and what else they say") {
  SpanList list("spans.jsonl",
                "\xEF\xBB\xBF"
                R"({"source":"a.mp4","begin":1.5,"end":"00:00:03.25","who":"me","n":3})"
                "\r\n\n"
                R"({"path":"a.mp4","start":"00:00:01:06","end":null})"
                "\n"
                R"({"video":"a.mp4","begin_frame":12,"end_frame":24,"kind":"clip"})"
                "\n"
                R"({"file":"a.mp4","start_time":"0:59","end_time":60,"begin_frame":1})"
                "\n"
                R"({"filename":"a.mp4","begin":2,"end":3,"pts_begin":1,"source_hash":"x","w":1})"
                "\n"
                R"({"source":"a.mp4","begin":4,"end":5,"pts_begin":1,"kind":"mine"})"
                "\n"
                R"({"kind":"caption","source":"a.mp4","text":"no span"})"
                "\n");
  CHECK(list.faults.empty());
  CHECK(list.of("a.mp4") == Lines{R"(1: 1.5s to 3.25s {"who":"me","n":3})", "3: 1s:6f to end",
                                  "4: f12 to f24", "5: 59s to 60s", "6: 2s to 3s",
                                  R"(7: 4s to 5s {"pts_begin":1})"});
  CHECK(list.left().empty());
}

TEST_CASE("a line of spans that says nothing costs itself alone, and says why") {
  SpanList list("spans.jsonl",
                "{\"source\":\"a.mp4\",\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":null,\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":true,\"end\":3}\n"
                "{\"source\":7,\"begin\":1,\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":3,\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin_frame\":3,\"end_frame\":2}\n"
                "[1,2]\n"
                "{\"kind\":\"shots\",\"path\":\"a.mp4\",\"cuts\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":\"1:-2\",\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":\"later\",\"end\":3}\n"
                "{\"source\":\"a.mp4\",\"begin\":2.999,\"end\":3}\n");
  CHECK(list.faults ==
        Lines{"1: the span has no 'begin'",
              "2: the span has no 'end'; null is the end of the video",
              "3: the span has no 'begin'", "4: a time is neither a number nor text",
              "5: the source is not text", "6: the span ends before it begins",
              "7: the span ends before it begins", "8: not a JSON object",
              "9: the record has no list 'cuts'", "10: a part of the time '1:-2' is negative",
              "11: cannot read 'later' as a time; write seconds, 00:01:30.25 or 00:01:30:06"});
  CHECK(list.of("a.mp4") == Lines{"12: 2.999s to 3s"});
}

TEST_CASE("a list of shots gives the spans between its changes") {
  SpanList list("shots.jsonl",
                "{\"kind\":\"shots\",\"path\":\"a.mp4\",\"frames\":9,\"cuts\":[{\"time\":1.5},"
                "{\"time\":2.25}]}\n"
                "{\"kind\":\"shots\",\"path\":\"b.mp4\",\"cuts\":[]}\n");
  CHECK(list.faults.empty());
  CHECK(list.left() == Lines{"a.mp4", "b.mp4"});
  CHECK(list.of("a.mp4") == Lines{"1: v0s to 1.5s", "1: 1.5s to 2.25s", "1: 2.25s to end"});
  CHECK(list.of("b.mp4") == Lines{"2: v0s to end"});
}

TEST_CASE("spans of a program that worked in another folder are named from there") {
  SpanList list("spans.jsonl",
                "{\"kind\":\"begin\",\"tool\":\"vfm-clip\",\"id\":\"1\",\"folder\":\"/data/x\"}\n"
                "{\"source\":\"a.mp4\",\"begin\":0,\"end\":1}\n"
                "{\"source\":\"/b.mp4\",\"begin\":0,\"end\":2}\n");
  CHECK(list.left() == Lines{"/data/x/a.mp4", "/b.mp4"});
  CHECK(list.of("/data/x/../x/a.mp4") == Lines{"2: 0s to 1s"});
  REQUIRE(list.faults.size() == 1);
  CHECK_THAT(list.faults[0], Catch::StartsWith("file: the output of vfm-clip broke off in ") &&
                                 Catch::EndsWith("(no end record): spans may be missing"));
}

TEST_CASE("columns of a table of spans are known by name, in any order and case") {
  SpanList list("table.csv",
                "End, NAME ,Begin,Video,,score\n"
                "3,\"a \"\"b\"\", c\",1.5,a.mp4,x,0.5\n"
                "  ,d,00:00:02,a.mp4,x,5%\n"
                "4,e,3.5,b.mp4\n"
                "4,e,3\n"
                "4,e\n"
                "4,e,3,,\n"
                "4,\"e,3,a.mp4\n"
                "2,e,2,a.mp4\n"
                "00:00:02:05,e,00:00:02:04,a.mp4,,1e3\n");
  CHECK(list.faults == Lines{"5: the line names no source",
                             "6: the line has 2 cells, and its time is cell 3",
                             "7: the line names no source", "8: a quote is not closed",
                             "9: the span ends before it begins"});
  CHECK(list.of("a.mp4") == Lines{R"(2: 1.5s to 3s {"name":"a \"b\", c","score":0.5})",
                                  R"(3: 2s to end {"name":"d","score":"5%"})",
                                  R"(10: 2s:4f to 2s:5f {"name":"e","score":1000.0})"});
  CHECK(list.of("b.mp4") == Lines{R"(4: 3.5s to 4s {"name":"e"})"});
}

TEST_CASE("a table without a header has source, begin and end") {
  SpanList list("table.csv", "a.mp4,0,1.5\na.mp4,2,\n,3,4\na.mp4,5,6,7\n");
  CHECK(list.faults == Lines{"3: the line names no source"});
  CHECK(list.of("a.mp4") == Lines{"1: 0s to 1.5s", "2: 2s to end", "4: 5s to 6s"});
  SpanList other("table.csv", "a.mp4,begin\n");
  CHECK(other.faults ==
        Lines{"1: no header with 'source', 'begin' and 'end', nor three cells in this order"});
}

TEST_CASE("a list of scenes counts from the first frame, frames from 1, and is of what it names") {
  const std::string scenes =
      "Timecode List:,00:00:01.500\n"
      "Scene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode,"
      "End Time (seconds)\n"
      "1,1,00:00:00.000,0.000,36,00:00:01.500,1.500\n"
      "2,37,00:00:01.500,1.500,48,00:00:02.000,2.000\n";
  SpanList seconds("film-Scenes.csv", scenes);
  CHECK(seconds.left() == Lines{"film"});
  CHECK(seconds.of("x/film.mp4") == Lines{"3: v0s to v1.5s", "4: v1.5s to v2s"});
  SpanList only("film-Scenes.csv", scenes, "y/other.mp4");
  CHECK(only.of("x/film.mp4") == Lines{"none"});
  CHECK(only.of("y/other.mp4") == Lines{"3: v0s to v1.5s", "4: v1.5s to v2s"});
  SpanList timecodes("film.csv", "Start Timecode,End Timecode\n00:00:00.500,00:00:01.500\n");
  CHECK(timecodes.of("film.mp4") == Lines{"2: v0.5s to v1.5s"});
  SpanList frames("film.csv", "Start Frame,End Frame,Shot\n1,36,x\n37,48,y\n");
  CHECK(frames.of("film.mp4") == Lines{"2: f0 to f36", "3: f36 to f48"});
  SpanList ours("film.csv", "begin_frame,end_frame,shot\n0,36,x\n36,48,2\n");
  CHECK(ours.of("film.mp4") ==
        Lines{R"(2: f0 to f36 {"shot":"x"})", R"(3: f36 to f48 {"shot":2.0})"});
}

TEST_CASE("an edit decision list gives the source's times of video events") {
  SpanList list("cut.edl",
                "TITLE: mine\n"
                "FCM: DROP FRAME\n"
                "001  AX       V     C        00:00:01:00 00:01:02:05 00:00:00:00 00:01:01:05\n"
                "* FROM CLIP NAME: a.mp4\n"
                "* SOURCE FILE: x/a.mp4\n"
                "* FROM CLIP NAME: other.mp4\n"
                "M2   AX       024.0\n"
                "002  AX       A     C        00:00:01:00 00:00:02:00 00:00:00:00 00:00:01:00\n"
                "* FROM CLIP NAME: sound.mp4\n"
                "FCM: NON-DROP FRAME\n"
                "003  AX       B     C        00:00:03:00 00:00:04:00 00:00:00:00 00:00:01:00\n"
                "* COMMENT\n"
                "* FROM CLIP NAME:  b.mp4\n"
                "004  AX       AA/V  D   024  00:00:05;00 00:00:06:00 00:00:00:00 00:00:01:00\n"
                "005  AX       V     C        00:00:05:00 00:00:05:00 00:00:00:00 00:00:01:00\n"
                "* FROM CLIP NAME: b.mp4\n"
                "006  AX       V     C        1.5 2.5 00:00:00:00 00:00:01:00\n"
                "007  AX       V     C        00:00:05:00\n"
                "008  AX       V     C        00:00:07:00 00:00:07:00 00:00:00:00 00:00:01:00\n"
                "* SOURCE FILE: b.mp4\n");
  CHECK(list.left() == Lines{"x/a.mp4", "b.mp4", "cut"});
  CHECK(list.of("x/a.mp4") == Lines{"3: 1s;0f to 62s;5f"});
  CHECK(list.of("y/b.mp4") == Lines{"11: 3s:0f to 4s:0f"});
  CHECK(list.of("cut.mov") == Lines{"14: 5s;0f to 6s:0f"});
  REQUIRE(list.faults.size() == 4);
  CHECK(list.faults[0] == "15: the span ends before it begins");
  CHECK_THAT(list.faults[1], Catch::Contains("' has no frames"));
  CHECK(list.faults[2] == "18: an event needs a number, a reel, a channel, a cut and four times");
  CHECK(list.faults[3] == "19: the span ends before it begins");
}

TEST_CASE("spans are of a path, or of the one video that has their name") {
  GivenSpans spans({}, "", {});
  const auto add = [&](const std::string& source, bool by_name, double begin) {
    GivenSpan span;
    span.begin.seconds = begin;
    spans.add(source, by_name, std::move(span));
  };
  add("x/a.mp4", false, 1);
  add("b.mp4", true, 2);
  add("./x/../x/a.mp4", false, 3);
  add("film", true, 4);
  add("https://a.b/x/../c.mp4", false, 5);
  const auto begins = [&](const std::string& path) {
    std::vector<double> all;
    if (const std::vector<GivenSpan>* found = spans.take(path))
      for (const GivenSpan& span : *found)
        all.push_back(span.begin.seconds);
    return all;
  };
  using Begins = std::vector<double>;
  CHECK(spans.left() == Lines{"x/a.mp4", "b.mp4", "film", "https://a.b/x/../c.mp4"});
  CHECK(begins("a.mp4") == Begins{});
  CHECK(begins("x/a.mp4") == Begins{1, 3});
  CHECK(begins("y/b.mp4") == Begins{2});
  CHECK(begins("y/./b.mp4") == Begins{2});  // the same file again
  CHECK_THROWS_WITH(begins("z/b.mp4"),
                    "the spans name only 'b.mp4', and that may be 'y/./b.mp4' or "
                    "'z/b.mp4'; give paths in --spans");
  CHECK(begins("https://a.b/c.mp4") == Begins{});
  CHECK(begins("https://a.b/x/../c.mp4") == Begins{5});
  CHECK(spans.left() == Lines{"film"});
  CHECK(begins("y/film.mkv") == Begins{4});
  CHECK(begins(".film") == Begins{});
  CHECK(spans.left().empty());
  CHECK_FALSE(usage_error([] { GivenSpans({"/nowhere/spans.csv"}, "", {}); }).empty());
}

TEST_CASE("what decides a clip of a span is its times and its fields") {
  GivenSpan span;
  span.begin = parse_span_time("1.5");
  span.end = parse_span_time("00:01:00;05");
  span.fields["a"] = 1;
  CHECK(span.text() == "0:1.5:0:false 3:60:5:true {\"a\":1}\n");
}

TEST_CASE("times have at most four parts, of which only the last may be frames") {
  CHECK(time_of(parse_span_time("00:00:00:999")) == "0s:999f");
  CHECK(time_of(parse_span_time("1000000000")) == "1000000000s");
  CHECK(time_of(parse_span_time("10:00:00")) == "36000s");
  const auto said = [](const char* text) -> std::string {
    try {
      parse_span_time(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said("00:00:00:1000") == "'00:00:00:1000' has no whole frames");
  CHECK(said("00:00:00:1.5") == "'00:00:00:1.5' has no whole frames");
  CHECK(said("1:2:3:4:5") == "'1:2:3:4:5' has too many parts for a time");
  CHECK(said("00:01;02") == "'00:01;02' is not a drop-frame timecode, as 00:01:30;06 is");
  CHECK(said("1000000001") == "'1000000001' is longer than any video");
  CHECK(said("-1000000001") == "'-1000000001' is longer than any video");
  CHECK(said("-0:30") == "a part of the time '-0:30' is negative");
  CHECK(said("0:-0") == "a part of the time '0:-0' is negative");
  CHECK(said("1.5x") == "cannot read '1.5x' as a time; write seconds, 00:01:30.25 or 00:01:30:06");
  // Four numbers a minute of 60 frames a second, none of a rate below 8.
  CHECK(parse_span_time("00:01:00;04").place(0, {60000, 1001}) == 3600);
  CHECK(parse_span_time("00:11:00;00").place(0, {30, 1}) == 660 * 30 - 20);
  CHECK(parse_span_time("00:00:02:00").place(0, {0, 1}) == 2);  // a rate that is not known
  SpanTime time = parse_span_time("2.5");
  time.unit = SpanTime::Unit::video;
  CHECK(time.place(10, {25, 1}) == 12.5);
  time = {SpanTime::Unit::frame, 0, 7};
  CHECK(time.place(10, {25, 1}) == 7);
  CHECK(std::isinf(SpanTime{SpanTime::Unit::open}.place(10, {25, 1})));
}

TEST_CASE("spans that overlap are cut in passes, equal ones once, and impossible ones are told") {
  using Unit = SpanTime::Unit;
  std::vector<GivenSpan> spans;
  const auto add = [&](SpanTime begin, SpanTime end) {
    spans.push_back({begin, end});
    spans.back().where = vfm::format("line {} of 'x'", spans.size());
  };
  const auto seconds = [](double s) { return SpanTime{Unit::container, s}; };
  const auto frame = [](std::int64_t f) { return SpanTime{Unit::frame, 0, f}; };
  add(seconds(4), seconds(6));
  add(seconds(0), seconds(4));
  add(seconds(3), seconds(5));
  add({Unit::video, 2}, seconds(6));  // 12 s: empty
  add(seconds(0), seconds(4));
  add(frame(2), frame(9));
  add(frame(9), {Unit::open});
  add(seconds(1), frame(5));
  add(frame(8), frame(10));
  add(seconds(5), {Unit::open});
  add(frame(3), frame(3));
  add({Unit::timecode, 1, 5}, {Unit::open});  // frame 30
  std::vector<std::string> errors;
  Lines pieces;
  for (const SpanPiece& piece : plan_pieces(spans, 10, {25, 1}, errors))
    pieces.push_back(vfm::format("{}: {}", piece.pass, piece.text()));
  CHECK(pieces == Lines{"0: line 2 of 'x': the span from 0.000 s to 4.000 s",
                        "0: line 1 of 'x': the span from 4.000 s to 6.000 s",
                        "1: line 3 of 'x': the span from 3.000 s to 5.000 s",
                        "1: line 10 of 'x': the span from 5.000 s to the end",
                        "2: line 6 of 'x': the span from frame 2 to frame 9",
                        "2: line 7 of 'x': the span from frame 9 to the end",
                        "3: line 9 of 'x': the span from frame 8 to frame 10",
                        "3: line 12 of 'x': the span from frame 30 to the end"});
  CHECK(errors == Lines{"line 4 of 'x': the span from 12.000 s to 6.000 s is empty",
                        "line 8 of 'x': one end is a time, the other one a frame",
                        "line 11 of 'x': the span from frame 3 to frame 3 is empty"});
}
