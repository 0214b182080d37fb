// What vfm-clip makes of several inputs: batches of pictures and of small videos, bad inputs, what
// is left over, a page; and of sound and key frames.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "clip/cut/smart_cut.h"
#include "io/atomic_file.h"
#include "media/decode/decoder.h"
#include "support/heard_log.h"
#include "support/usage_error.h"
#include "unit/clip/clip_run.h"
#include "unit/media/media_files.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;
using clip_run::Lines;

TEST_CASE("inputs that cannot be used cost themselves alone, and other records pass") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({5, 6}));
  run.source("b.y4m", clip_run::shots({5, 6}));
  run.source("c.mp4", "no video");
  run.folder.write("list.jsonl", "{\"kind\":\"mine\",\"x\":1}\n{\"kind\":\"video\",\"path\":\"" +
                                     run.folder / "d.y4m" +
                                     "\",\"license\":\"free\",\"kind\":\"video\",\"samples\":7}\n");
  run.folder.write("d.y4m", clip_run::shots({5, 6}, 7));
  run.options.inputs.push_back(run.folder / "none.mp4");
  run.options.inputs.push_back(run.folder / "list.jsonl");
  {
    const HeardLog told(LogLevel::info);
    CHECK(run.run() == 2);
    CHECK(HeardLog::any("b.y4m' has the same contents as '" + run.folder / "a.y4m" + "'; skipped"));
  }
  Lines faults = run.faults();
  REQUIRE(faults.size() == 2);
  CHECK_THAT(faults[0],
             Catch::StartsWith("c.mp4: cannot open 'c.mp4'") && Catch::EndsWith("(format)"));
  CHECK_THAT(faults[1],
             Catch::StartsWith("none.mp4: cannot open 'none.mp4'") && Catch::EndsWith("(open)"));
  REQUIRE(run.records.size() == 3);
  CHECK(run.records[0].at("source") == run.folder / "a.y4m");
  CHECK(run.records[1] == Json{{"kind", "mine"}, {"x", 1}});
  CHECK(run.records[2].at("license") == "free");
  CHECK(run.records[2].at("samples") == 2);  // its own, not the video's
  // Of one of no shot that is long enough.
  run.options.inputs = {run.folder / "d.y4m"};
  run.options.recipe.min_seconds = 2;
  CHECK_THROWS_WITH(run.run(), "no clips: nothing in the input could be used");
  CHECK(run.faults() == Lines{"d.y4m: no clip: every shot is too short (empty)"});
  run.options.inputs = {run.folder / "list.jsonl"};
  run.folder.write("list.jsonl", "");
  CHECK_THROWS_WITH(run.run(), "no videos in the input");
  CHECK(run.faults().empty());
  // Records alone are enough.
  run.folder.write("list.jsonl", "{\"kind\":\"mine\",\"x\":1}\n");
  CHECK(run.run() == 0);
  CHECK(run.records == std::vector<Json>{{{"kind", "mine"}, {"x", 1}}});
}

TEST_CASE("pictures of one format share shards, and a bad one is reported by each run") {
  ClipRun run;
  run.source("a.bmp", clip_run::drawn_bitmap(5));
  run.source("b.bmp", clip_run::shots({2}));
  run.source("c.bmp", clip_run::drawn_bitmap(6));
  run.options.readable_names = true;
  CHECK(run.run() == 1);
  const auto check = [&] {
    CHECK(run.faults() ==
          Lines{"b.bmp: 'b.bmp' has the name of a picture, but is a video (rawvideo); rename it "
                "(decode)"});
    Json paths = Json::array(), hashes = Json::array();
    for (const char* name : {"a.bmp", "b.bmp", "c.bmp"}) {
      paths.push_back(run.folder / name);
      hashes.push_back(io::hash_file(run.folder / name));
    }
    REQUIRE(run.records.size() == 1);
    const std::string path = run.records[0].at("path");
    CHECK(run.records[0].at("samples") == 2);
    CHECK(run.records[0].at("sources") == paths);
    CHECK(run.records[0].at("source_hashes") == hashes);
    CHECK(run.records[0].at("columns") == Json{{"clip", path}});
    CHECK_FALSE(run.records[0].contains("source"));
    const auto samples = run.samples();
    REQUIRE(samples.size() == 2);
    CHECK(samples[0].key.starts_with("a-"));
    CHECK(*samples[1].find("bmp") == clip_run::drawn_bitmap(6));
  };
  check();
  const Json index = run.index();
  CHECK(index.at("kind") == "images");
  const auto written =
      std::filesystem::last_write_time(run.records[0].at("path").get<std::string>());
  CHECK(run.run() == 1);
  check();
  CHECK(std::filesystem::last_write_time(run.records[0].at("path").get<std::string>()) == written);
  // One that may do better another time is tried again.
  Json later = index;
  later["errors"][0]["code"] = "timeout";
  const std::string name = run.records[0].at("path").get<std::string>();
  io::write_file(name.substr(0, name.size() - 10) + ".json", dump_json(later));
  CHECK(run.run() == 1);
  check();
  CHECK(run.index() == index);
  // Not one is an error of the run.
  run.options.inputs = {run.folder / "b.bmp"};
  CHECK_THROWS_WITH(run.run(), "no clips: nothing in the input could be used");
}

TEST_CASE("small videos that are joined have the clips that they have alone") {
  ClipRun run, alone;
  for (ClipRun* one : {&run, &alone}) {
    one->source("a.y4m", clip_run::shots({5, 6}));
    one->source("b.y4m", clip_run::shots({7}, 4));
    one->source("c.mp4", "no video");
    one->source("d.y4m", clip_run::shots({5, 9, 6}, 9));
    one->options.join = one == &run ? Joining::all : Joining::none;
  }
  const HeardLog told(LogLevel::info);
  CHECK(alone.run() == 1);
  CHECK(run.run() == 1);
  CHECK(run.faults() == alone.faults());
  const auto samples = run.samples(), others = alone.samples();
  REQUIRE(samples.size() == 6);
  REQUIRE(others.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(samples[i].key == others[i].key);
    CHECK(*samples[i].find("mp4") == *others[i].find("mp4"));
  }
  const Json index = run.index();
  CHECK(index.at("kind") == "joined");
  CHECK(index.at("clips") == 6);
  const Json& entries = index.at("sources");
  REQUIRE(entries.size() == 4);
  Json first = {{"source", run.folder / "a.y4m"},
                {"source_hash", io::hash_file(run.folder / "a.y4m")},
                {"stream", 0},
                {"frames", 11},
                {"seconds", 1.1},
                {"corrupt", 0},
                {"cuts", entries[0].at("cuts")},
                {"left_out", Json::array()},
                {"errors", Json::array()},
                {"clips", 2}};
  CHECK(entries[0] == first);
  CHECK(entries[0].at("cuts").size() == 1);
  CHECK(entries[2].at("clips") == 0);
  CHECK(entries[2].contains("failed"));
  CHECK(entries[3].at("clips") == 3);
  REQUIRE(run.records.size() == 1);
  CHECK(run.records[0].at("samples") == 6);
  CHECK(run.records[0].at("sources").size() == 4);
  const std::string name = run.records[0].at("path").get<std::string>();
  const std::string batch = io::base_name(name.substr(0, name.size() - 10));
  CHECK(HeardLog::any("'" + batch + "': 6 clips of 4 videos"));
  CHECK(HeardLog::any("'" + run.folder / "d.y4m" + "': cut, for '" + batch + "'"));
  // Again: the bad one is tried, and nothing changes.
  HeardLog::clear();
  CHECK(run.run(2) == 1);
  CHECK(run.index() == index);
  CHECK(HeardLog::any("'" + run.folder / "c.mp4" + "': cut, for '" + batch + "'"));
  CHECK_FALSE(HeardLog::any("'" + run.folder / "d.y4m" + "': cut, for '" + batch + "'"));
  // Without the bad one the clips are copied.
  run.options.inputs.erase(run.options.inputs.begin() + 2);
  run.options.prune = true;
  CHECK(run.run() == 0);
  CHECK(run.samples().size() == 6);
  CHECK(run.records[0].at("path") != name);
  CHECK_FALSE(std::filesystem::exists(name));  // of a batch that is no more
  CHECK(run.index().at("sources")[0] == first);
  CHECK(HeardLog::count([&](const std::string& line) {
          return line.starts_with("'" + run.folder / "d.y4m" + "': copied into 'joined-");
        }) > 0);
  // One for which there is no clip.
  run.options.recipe.min_seconds = 0.8;
  CHECK(run.run() == 1);
  CHECK(run.faults() == Lines{"a.y4m: no clip: every shot is too short (empty)"});
  CHECK(run.each("frames") == "7 9");
  // Files are not joined.
  run.options.format = ClipFormat::files;
  CHECK(run.run() == 1);
  CHECK(run.records.size() == 2);
}

TEST_CASE(
    "the page of a run has a line for each video, pictures of its clips, and their measures") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({8, 13, 20}));
  run.source("b.y4m", clip_run::shots({9}, 5));
  run.source("c.bmp", clip_run::drawn_bitmap(3));
  run.options.recipe.min_seconds = 1;
  run.options.report = run.folder / "page/page.html";
  CHECK(run.run() == 0);
  const std::string page = io::read_file(run.options.report);
  const auto has = [&](const std::string& text) { return page.find(text) != std::string::npos; };
  CHECK(has("4 clips of 3 sources."));
  CHECK(has("a.y4m\u2069: 4.1s, 2 changes of shot, 2 clips</figcaption>"));
  CHECK(has("b.y4m\u2069: 0.9s, 0 changes of shot, 1 clip</figcaption>"));
  CHECK(
      has("<rect width='1000' height='24' fill='#7fa8c9'/><rect x='0.0' width='195.1' "
          "height='24' fill='#e4e4e4'/><rect x='195.1' width='2' height='24' fill='#222'/>"
          "<rect x='512.2' width='2' height='24' fill='#222'/></svg>"));
  for (const char* caption : {"0.80 s to 2.10 s, cut to cut", "2.10 s to 4.10 s, cut to end",
                              "0.00 s to 0.90 s, start to end", "64 x 48"})
    CHECK(has(std::string(">") + caption + "</figcaption>"));
  CHECK(has("<title>1.9333 to 2: 1</title>"));
  CHECK(has("<title>0.0135 to 0.014: 1</title>"));
}

TEST_CASE("a clip's sound is copied or encoded, and measured though it is dropped") {
  NEED_FFMPEG();
  ClipRun run;
  run.options.inputs = {media_files::path("plain.mp4")};
  run.options.recipe.stride = 1;
  for (const media::AudioMode mode :
       {media::AudioMode::drop, media::AudioMode::copy, media::AudioMode::aac}) {
    run.options.recipe.audio = mode;
    CHECK(run.run() == 0);
    const bool dropped = mode == media::AudioMode::drop;
    CHECK(run.each("audio") == (dropped ? "null null" : R"("aac" "aac")"));
    for (const shard::Sample& sample : run.samples()) {
      media::Decoder decoder(std::string_view(*sample.find("mp4")), "it");
      CHECK(decoder.info().has_audio == !dropped);
    }
    CHECK(run.index().value("sound_corrupt", Json()) == (dropped ? Json() : Json(0)));
    CHECK(run.each("silence") == "0.0 0.0");
    for (const Json& clip : run.clips()) {
      CHECK(clip.at("loudness").get<double>() < -10);
      CHECK(clip.at("loudness").get<double>() > -25);
    }
  }
}

TEST_CASE("from its first key frame on a clip is the source's packets") {
  NEED_FFMPEG();
  ClipRun run;
  run.options.inputs = {media_files::path("plain.mp4")};  // a key frame each 12 of 50 frames
  run.options.recipe.stride = 0.8;
  run.options.recipe.smart = true;
  run.options.verify = true;
  const auto table = [&] {
    std::string text;
    for (const Json& clip : run.clips())
      text += vfm::format("{} {} {} {} {}; ", dump_json(clip.at("frames_encoded")),
                          dump_json(clip.at("frames_copied")), dump_json(clip.at("encoder")),
                          dump_json(clip.at("not_copied")), dump_json(clip.at("verified")));
    return text;
  };
  CHECK(run.run() == 0);
  CHECK(table() ==
        "1 19 \"libx264\" null true; 4 16 \"libx264\" null true; 8 2 \"libx264\" null true; ");
  run.options.recipe.stride = 0.2;
  CHECK(run.run(3) == 0);
  const std::string none = "5 0 \"libx264\" \"no key frame to copy from is in it\" true; ",
                    four = "1 4 \"libx264\" null true; ", one = "4 1 \"libx264\" null true; ";
  CHECK(table() ==
        four + none + one + none + one + none + none + four + none + "3 2 \"libx264\" null true; ");
  run.options.inputs = {media_files::path("rotated.mp4")};
  run.options.recipe.stride = 0;
  CHECK(run.run() == 0);
  CHECK(table() == "50 0 \"libx264\" \"the source is shown turned or mirrored\" true; ");
}

TEST_CASE("a source whose frames are not shown as they are coded is not copied, and why is told") {
  media::StreamInfo info;
  info.codec = "h264";
  info.pixel_format = "yuv420p";
  info.width = 64, info.height = 48;
  ClipRecipe recipe;
  recipe.smart = true;
  const auto reason = [&] { return smart_start(recipe, info).reason; };
  CHECK(reason().empty());
  CHECK(smart_start(recipe, info).encoder == "libx264");
  info.pixel_format = "yuvj420p";
  CHECK(reason().empty());
  info.pixel_format = "yuv422p";
  CHECK(reason() == "the source's pixels (yuv422p) are converted");
  info.pixel_format = "yuv420p10le";
  info.bit_depth = 10;
  CHECK(reason() == "the source's pixels (yuv420p10le) are converted");
  recipe.keep_hdr = true;
  CHECK(reason() == "the source's pixels (yuv420p10le) are converted");
  info.transfer = 16, info.primaries = 9;
  CHECK(reason().empty());
  recipe.keep_hdr = false;
  CHECK(reason() == "the source is HDR, which is tone-mapped");
  info.transfer = 14;
  CHECK(reason() == "the source has the colours of BT.2020, which are converted");
  info.transfer = info.primaries = 2;
  info.pixel_format = "yuv420p";
  info.width = 63;
  CHECK(reason() == "encoder 'libx264' makes no pictures of 63x48");
  info.width = 64;
  info.interlaced = true;
  CHECK(reason() == "the source is interlaced");
  info.interlaced = false;
  info.mirror = true;
  CHECK(reason() == "the source is shown turned or mirrored");
  info.mirror = false;
  info.rotation = 90;
  CHECK(reason() == "the source is shown turned or mirrored");
  info.rotation = 0;
  recipe.smart_encoder = "libx265";
  CHECK(reason() == "encoder 'libx265' makes no h264");
  recipe.smart_encoder = "libx264";
  CHECK(reason().empty());
  info.codec = "mpeg4";
  CHECK(reason() == "no encoder makes frames that can stand beside copied ones of mpeg4");
}

TEST_CASE("spans that name no source are of the only video, or of the one named as their file") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({5, 6}));
  run.folder.write("b.csv", "begin,end\n0,0.5\n");
  run.options.spans = {run.folder / "b.csv"};
  run.options.recipe.given = true;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_end") == "5");
  run.source("b.y4m", clip_run::shots({7}, 4));
  const HeardLog told(LogLevel::info);
  CHECK(run.run() == 0);
  CHECK(run.each("source") == dump_json(run.folder / "b.y4m"));
  CHECK(HeardLog::any("a.y4m' has no span in the files of --spans; skipped"));
  // A list of videos says nothing of how many there are.
  run.folder.write("list.jsonl",
                   "{\"kind\":\"video\",\"path\":\"" + run.folder / "a.y4m" + "\"}\n");
  run.options.inputs = {run.folder / "list.jsonl"};
  CHECK_THROWS_WITH(run.run(), "no clips: nothing in the input could be used");
  CHECK(run.faults() == Lines{"b: has spans, but is not in the input (missing)"});
  run.folder.write("b.csv", "begin,end\n");
  CHECK(usage_error([&] { run.run(); }) == "the files of --spans hold no span");
}

TEST_CASE("progress counts each source once, in batches too") {
  struct Counted : Progress {
    std::uint64_t total = 0, done = 0;
    std::string unit;
    void start(std::string_view name, std::uint64_t all) override { unit = name, total = all; }
    void add(std::uint64_t more) override { done += more; }
  };
  ClipRun run;
  for (int i = 0; i < 4; ++i)
    run.source(vfm::format("{}.y4m", i), clip_run::shots({2}, static_cast<std::uint64_t>(i + 1)));
  run.source("5.bmp", clip_run::drawn_bitmap(1));
  run.source("6.bmp", clip_run::drawn_bitmap(2));
  run.source("7.mp4", "no video");
  const auto count = [&] {
    Counted progress;
    run.run([&](const ClipOptions& options, share::Slots& slots, Progress&,
                io::ManifestWriter& manifest) {
      return vfm::clip::run(options, slots, progress, manifest);
    });
    CHECK(progress.unit == "videos");
    CHECK(progress.total == 7);
    return progress.done;
  };
  CHECK(count() == 7);
  run.options.join = Joining::all;
  run.options.directory = run.folder / "joined";
  CHECK(count() == 7);
  CHECK(count() == 7);  // the bad one alone is tried again
  run.options.inputs.pop_back();
  run.source("8.y4m", clip_run::shots({3}, 8));
  CHECK(count() == 7);
  CHECK(count() == 7);  // all is there
}

TEST_CASE("damage is counted, and told with what is used; a late beginning is told") {
  NEED_FFMPEG();
  std::string bytes = media_files::read(media_files::path("program.ts"));
  ClipRun run;
  run.source("whole.ts", bytes);
  CHECK(run.run() == 0);
  CHECK(run.clips().at(0).at("source_begin").get<double>() == Approx(1.4).margin(0.2));
  for (std::size_t i = 0; i < 3000; ++i)
    bytes[bytes.size() / 2 + i] = static_cast<char>(i * 7);
  run.options.inputs.clear();
  run.source("damaged.ts", bytes);
  run.options.directory = run.folder / "damaged";
  CHECK(run.run() >= 1);
  const Json index = run.index();
  const auto corrupt = index.at("corrupt").get<std::int64_t>();
  CHECK(corrupt > 0);
  CHECK(run.faults()[0] ==
        vfm::format("damaged.ts: {} packets or frames are damaged or missing; the rest is used "
                    "(decode)",
                    corrupt));
  run.options.inputs = {media_files::path("plain.mp4")};
  run.options.directory = run.folder / "plain";
  CHECK(run.run() == 0);
  CHECK_FALSE(run.clips().at(0).contains("source_begin"));
}
