// Lists of shots, as other programs read them.
// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/shot_lists.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.h"

using namespace vfm;
using namespace vfm::clip;

TEST_CASE("a list of scenes counts from 1, and its last frames are in it") {
  ShotsOfVideo video{"a,\"b\"\n.mp4", {24, 1}, {{0, 36, 0, 1.5}, {36, 48, 1.5, 3723.0006}}};
  CHECK(shots_csv(video) ==
        "1,1,00:00:00.000,0.000000,36,00:00:01.500,1.500000,36,00:00:01.500,1.500000,"
        "\"a,\"\"b\"\"?.mp4\"\n"
        "2,37,00:00:01.500,1.500000,48,01:02:03.001,3723.000600,12,01:02:01.501,3721.500600,"
        "\"a,\"\"b\"\"?.mp4\"\n");
  video.path = "plain.mp4";
  video.shots = {{0, 1, -0.25, 0.5}};
  CHECK(shots_csv(video) ==
        "1,1,00:00:00.000,-0.250000,1,00:00:00.500,0.500000,1,00:00:00.750,0.750000,plain.mp4\n");
  const std::string header = shots_csv_header(), line = shots_csv(video);
  CHECK(std::count(header.begin(), header.end(), ',') == std::count(line.begin(), line.end(), ','));
}

TEST_CASE("an edit decision list goes on from video to video, each on a whole second") {
  ShotsEdl edl;
  CHECK(edl.header() == "TITLE: vfm-clip\nFCM: NON-DROP FRAME\n");
  CHECK(edl.add({"raw/a.mp4", {24, 1}, {{0, 30, 0, 1.25}, {30, 49, 1.25, 49 / 24.}}}) ==
        "\n001  AX       V     C        00:00:00:00 00:00:01:06 00:00:00:00 00:00:01:06\n"
        "* FROM CLIP NAME: a.mp4\n* SOURCE FILE: raw/a.mp4\n"
        "\n002  AX       V     C        00:00:01:06 00:00:02:01 00:00:01:06 00:00:02:01\n"
        "* FROM CLIP NAME: a.mp4\n* SOURCE FILE: raw/a.mp4\n");
  CHECK(edl.add({"none.mp4", {24, 1}, {}}).empty());
  // 29.97 frames a second count as 30, and the video before was 49 frames long.
  CHECK(edl.add({"b.mp4", {30000, 1001}, {{30 * 3661 + 5, 30 * 3661 + 35, 0, 1}}}) ==
        "\n003  AX       V     C        01:01:01:05 01:01:02:05 01:01:04:05 01:01:05:05\n"
        "* FROM CLIP NAME: b.mp4\n* SOURCE FILE: b.mp4\n");
  // Two digits are for frames 0 to 99.
  ShotsEdl::check_rate("d.mp4", {100, 1});
  ShotsEdl::check_rate("d.mp4", {0, 1});
  CHECK_THROWS_WITH(ShotsEdl::check_rate("d.mp4", {120000, 1001}),
                    Catch::Contains("'d.mp4'") && Catch::Contains("119.88") &&
                        Catch::Contains("--format otio, csv or json"));
  // No rate is known: a frame is a second.
  CHECK(edl.add({"c.mp4", {0, 1}, {{0, 2, 0, 2}}}).find("00:00:00:00 00:00:02:00 01:01:06:00") !=
        std::string::npos);
}

TEST_CASE("a timeline counts frames of a constant rate, and ticks of a variable one") {
  ShotsTimeline timeline;
  // 23.976 frames a second in milliseconds: each time is rounded.
  const ShotsOfVideo constant{
      "raw/a b%#.mp4",
      {24000, 1001},
      {{0, 31, 0, 1.293, 0, 1293}, {31, 49, 1.293, 2.044, 1293, 2044, "wipe", 0.5}},
      {1, 1000}};
  const ShotsOfVideo variable{"/c\n\xff.mkv", {12, 1}, {{0, 5, 0, 0.7, 0, 63000}}, {1, 90000}};
  std::string text = timeline.header() + timeline.add(constant);
  text += timeline.add({"none", {}, {}});
  text += timeline.add(variable);
  text += timeline.footer();
  const Json clips = parse_json(text, "it").at("tracks").at("children")[0].at("children");
  REQUIRE(clips.size() == 3);
  const Json& second = clips[1];
  CHECK(second.at("name") == "a b%#.mp4 2");
  CHECK(second.at("metadata").at("vfm").at("start_type") == "wipe");
  CHECK(second.at("media_reference").at("target_url") == "raw/a%20b%25%23.mp4");
  CHECK(second.at("source_range").at("start_time").at("value") == 31.0);
  CHECK(second.at("source_range").at("duration").at("value") == 18.0);
  CHECK(second.at("source_range").at("duration").at("rate") == 24000.0 / 1001);
  CHECK(second.at("media_reference").at("available_range").at("duration").at("value") == 49.0);
  const Json& third = clips[2];
  CHECK(third.at("media_reference").at("target_url") == "file:///c%0A%FF.mkv");
  CHECK(third.at("source_range").at("duration").at("value") == 63000.0);
  CHECK(third.at("source_range").at("duration").at("rate") == 90000.0);
  CHECK(dump_json(clips[0]) ==
        R"({"OTIO_SCHEMA":"Clip.1","name":"a b%#.mp4 1","source_range":{"OTIO_SCHEMA":)"
        R"("TimeRange.1","start_time":{"OTIO_SCHEMA":"RationalTime.1","rate":23.976023976023978,)"
        R"("value":0.0},"duration":{"OTIO_SCHEMA":"RationalTime.1","rate":23.976023976023978,)"
        R"("value":31.0}},"media_reference":{"OTIO_SCHEMA":"ExternalReference.1",)"
        R"("name":"a b%#.mp4","target_url":"raw/a%20b%25%23.mp4","available_range":)"
        R"({"OTIO_SCHEMA":"TimeRange.1","start_time":{"OTIO_SCHEMA":"RationalTime.1",)"
        R"("rate":23.976023976023978,"value":0.0},"duration":{"OTIO_SCHEMA":"RationalTime.1",)"
        R"("rate":23.976023976023978,"value":49.0}},"metadata":{}},"effects":[],"markers":[],)"
        R"("metadata":{"vfm":{"start_type":"start","start_score":0.0}}})");
  CHECK(second.at("metadata").at("vfm").at("start_score") == 0.5);
  // A frame's time may be a tick off, and not two.
  const auto rate_of = [](std::int64_t tick, Rational rate) {
    const Shot shot{0, 10, 0, 1, 0, tick};
    ShotsTimeline one;
    const std::string all = one.header() +
                            one.add({"https://a.b/c d.mp4?x=1&y=%20", rate, {shot}, {1, 100}}) +
                            one.footer();
    const Json clip = parse_json(all, "it").at("tracks").at("children")[0].at("children")[0];
    CHECK(clip.at("media_reference").at("target_url") == "https://a.b/c%20d.mp4?x=1&y=%20");
    return clip.at("source_range").at("duration").at("rate").get<double>();
  };
  CHECK(rate_of(100, {10, 1}) == 10);
  CHECK(rate_of(101, {10, 1}) == 10);
  CHECK(rate_of(102, {10, 1}) == 100);
  CHECK(rate_of(98, {10, 1}) == 100);
  CHECK(rate_of(100, {0, 1}) == 100);
  // Without any video it is a timeline, too.
  CHECK(parse_json(ShotsTimeline().header() + ShotsTimeline().footer(), "it").at("name") ==
        "vfm-clip");
}

TEST_CASE("chapters go on from video to video, in each one's ticks, and no name ends a line") {
  ShotsChapters chapters;
  CHECK(chapters.header() == ";FFMETADATA1\n");
  CHECK(chapters.add({"x/a=b;#\\\nTITLE\u00e9.mp4",
                      {25, 1},
                      {{0, 5, 0, 0.2, 0, 18}, {5, 9, 0.2, 0.36, 18, 45}},
                      {1, 90}}) ==
        "[CHAPTER]\nTIMEBASE=1/90\nSTART=0\nEND=18\ntitle=a\\=b\\;\\#\\\\?TITLE\u00e9.mp4 1\n"
        "[CHAPTER]\nTIMEBASE=1/90\nSTART=18\nEND=45\ntitle=a\\=b\\;\\#\\\\?TITLE\u00e9.mp4 2\n");
  CHECK(chapters.add({"b", {25, 1}, {{0, 5, 0, 0.2, 0, 200}}, {1, 1000}}) ==
        "[CHAPTER]\nTIMEBASE=1/1000\nSTART=500\nEND=700\ntitle=b 1\n");
  // Its container begins 21 ms before its first frame.
  CHECK(chapters.add({"c", {25, 1}, {{0, 5, 0, 0.2, 0, 200}}, {1, 1000}, 21}) ==
        "[CHAPTER]\nTIMEBASE=1/1000\nSTART=721\nEND=921\ntitle=c 1\n");
  CHECK(chapters.add({"d", {25, 1}, {{0, 5, 0, 0.2, 0, 20}}, {1, 100}}) ==
        "[CHAPTER]\nTIMEBASE=1/100\nSTART=92\nEND=112\ntitle=d 1\n");
}

TEST_CASE("a table of shots has a line for each change, and none that a name begins") {
  Json record = {{"kind", "shots"},
                 {"path",
                  "a\n\x7f"
                  "b.mp4"},
                 {"frames", 9},
                 {"cuts", Json::array()}};
  CHECK(shots_table(record) == "a??b.mp4: 0 changes of shot in 9 frames\n");
  record["threshold"] = 0.25;
  record["cuts"] = {
      {{"frame", 123456}, {"time", 3723.0006}, {"type", "transition"}, {"score", 0.5}},
      {{"frame", 7}, {"time", -1.0}, {"type", "cut"}, {"score", 12.345}}};
  CHECK(shots_table(record) ==
        "a??b.mp4, threshold 0.25: 2 changes of shot in 9 frames\n"
        "          time     frame  kind        score\n"
        "  01:02:03.001    123456  transition   0.50\n"
        "  00:00:00.000         7  cut         12.35\n");
  record["cuts"].erase(1);
  CHECK(shots_table(record).starts_with("a??b.mp4, threshold 0.25: 1 change of shot in 9 "));
}

TEST_CASE("a change of shot as JSON has its time in seconds, to six digits") {
  curate::ShotChange change;
  change.frame = 7;
  change.score = 0.5f;
  CHECK(dump_json(change_json(change, 1, {1, 3})) ==
        R"({"frame":7,"pts":1,"time":0.333333,"type":"cut","score":0.5})");
}
