// What `vfm-clip shots` prints, and what it asks of a network.
// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/list_shots.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "clip/lists/shot_lists.h"
#include "io/file.h"
#include "io/manifest.h"
#include "share/slots.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"
#include "unit/clip/clip_run.h"
#include "unit/media/media_files.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;

namespace {

/// A YUV4MPEG2 file of frames that are each of another grey.
std::string greys(int frames) {
  constexpr int kSide = 32;
  std::string file = "YUV4MPEG2 W32 H32 F25:1 Ip A1:1 C420jpeg\n";
  for (int i = 0; i < frames; ++i) {
    file += "FRAME\n";
    file.append(kSide * kSide, static_cast<char>(20 + 3 * i));
    file.append(kSide * kSide / 2, static_cast<char>(128));
  }
  return file;
}

}  // namespace

TEST_CASE("a network is asked once of each window, whatever the number of thresholds") {
  const TemporaryFolder folder;
  folder.write("greys.y4m", greys(60));  // its two windows are asked of behind its end
  ClipOptions options;
  options.inputs = {folder / "greys.y4m"};
  options.recipe.shots.detector = curate::Detector::transnetv2;
  options.thresholds = {0.3, 0.5, 0.7};
  std::atomic<int> asked = 0;
  options.change_model = [&](std::span<const std::uint8_t> frames) {
    ++asked;
    return std::vector<float>(frames.size() / (3 * curate::kChangeWidth * curate::kChangeHeight));
  };
  share::Slots slots(1);
  Progress progress;
  const io::File nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
  io::ManifestWriter manifest(nowhere.fd());
  CHECK(list_shots(options, slots, progress, manifest) == 0);
  CHECK(asked == 2);
}

namespace {

/// Runs `vfm-clip shots`, and reads what it prints.
struct ShotsRun : ClipRun {
  std::string printed;
  long list() {
    std::fflush(stdout);
    const std::string path = folder / "stdout";
    const int kept = ::dup(STDOUT_FILENO);
    const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), path);
    ::dup2(file.fd(), STDOUT_FILENO);
    const auto restore = [&] {
      ::dup2(kept, STDOUT_FILENO);
      ::close(kept);
    };
    long failed = -1;
    try {
      failed = run(list_shots);
    } catch (...) {
      restore();
      throw;
    }
    restore();
    printed = io::read_file(path);
    return failed;
  }
};

Json cut_of(int frame, double score) {
  return {
      {"frame", frame}, {"pts", frame}, {"time", frame / 10.0}, {"type", "cut"}, {"score", score}};
}

}  // namespace

TEST_CASE("a list of shots has a record for each video, and one for each threshold") {
  ShotsRun run;
  run.source("a.y4m", clip_run::shots({8, 13}));
  run.source("b.y4m", clip_run::shots({9}, 7));
  run.source("bad.mp4", "no video");
  run.folder.write("list.jsonl", "{\"kind\":\"mine\",\"x\":1}\n");
  run.options.inputs.push_back(run.folder / "list.jsonl");
  run.options.inputs.push_back(run.folder.path);
  {
    const HeardLog told(LogLevel::info);
    CHECK(run.list() == 2);
    CHECK(HeardLog::any(" -type f | vfm-clip ..."));
  }
  REQUIRE(run.records.size() == 3);
  const double score = run.records[0].at("cuts")[0].at("score");
  CHECK(score == Approx(1.138554).margin(2e-5));
  const Json first = {{"kind", "shots"},
                      {"path", run.folder / "a.y4m"},
                      {"frames", 21},
                      {"cuts", {cut_of(8, score)}}};
  CHECK(run.records[0] == first);
  CHECK(run.records[1] == Json{{"kind", "shots"},
                               {"path", run.folder / "b.y4m"},
                               {"frames", 9},
                               {"cuts", Json::array()}});
  CHECK(run.records[2] == Json{{"kind", "mine"}, {"x", 1}});
  CHECK(run.printed.empty());
  run.options.inputs = {run.folder / "a.y4m"};
  run.options.thresholds = {0.5, 1.2};
  CHECK(run.list() == 0);
  CHECK(run.records == std::vector<Json>{{{"kind", "shots"},
                                          {"path", run.folder / "a.y4m"},
                                          {"threshold", 0.5},
                                          {"frames", 21},
                                          {"cuts", {cut_of(8, score)}}},
                                         {{"kind", "shots"},
                                          {"path", run.folder / "a.y4m"},
                                          {"threshold", 1.2},
                                          {"frames", 21},
                                          {"cuts", Json::array()}}});
  // For people.
  std::string table;
  run.options.print_table = [&](const std::string& lines) { table += lines; };
  CHECK(run.list() == 0);
  CHECK(run.records.empty());
  CHECK(table == run.folder / "a.y4m" +
                     ", threshold 0.5: 1 change of shot in 21 frames\n"
                     "          time     frame  kind        score\n"
                     "  00:00:00.800         8  cut          1.14\n" +
                     run.folder / "a.y4m" + ", threshold 1.2: 0 changes of shot in 21 frames\n");
  // Of the middle alone: 1 s of 2.1 s.
  run.options.print_table = nullptr;
  run.options.thresholds.clear();
  run.options.most_seconds = 1;
  CHECK(run.list() == 0);
  CHECK(run.records.at(0).at("frames") == 10);
  CHECK(run.records[0].at("cuts")[0].at("pts") == 8);
  CHECK(run.records[0].at("cuts")[0].at("frame") == 2);
  run.options.inputs = {run.folder / "list.jsonl"};
  run.folder.write("list.jsonl", "");
  CHECK_THROWS_WITH(run.list(), "no videos in the input");
}

TEST_CASE("each format of a list of shots goes on from video to video") {
  ShotsRun run;
  run.source("a.y4m", clip_run::shots({8, 13}));
  run.source("b.y4m", clip_run::shots({9}, 7));
  run.list();
  const double score = run.records.at(0).at("cuts")[0].at("score");
  const ShotsOfVideo a{run.folder / "a.y4m",
                       {10, 1},
                       {{0, 8, 0, 0.8, 0, 8}, {8, 21, 0.8, 2.1, 8, 21, "cut", score}},
                       {1, 10}},
      b{run.folder / "b.y4m", {10, 1}, {{0, 9, 0, 0.9, 0, 9}}, {1, 10}};
  const auto printed = [&](ShotFormat format) {
    run.options.shot_format = format;
    CHECK(run.list() == 0);
    CHECK(run.records.empty());
    return run.printed;
  };
  CHECK(printed(ShotFormat::csv) == shots_csv_header() + shots_csv(a) + shots_csv(b));
  ShotsEdl edl;
  std::string text = edl.header() + edl.add(a);
  CHECK(printed(ShotFormat::edl) == text + edl.add(b));
  ShotsTimeline timeline;
  text = timeline.header() + timeline.add(a);
  text += timeline.add(b) + timeline.footer();
  CHECK(printed(ShotFormat::otio) == text);
  ShotsChapters chapters;
  text = chapters.header() + chapters.add(a);
  CHECK(printed(ShotFormat::chapters) == text + chapters.add(b));
  // One that the format cannot count is left out.
  std::string fast = clip_run::shots({3});
  fast.replace(fast.find("F10:1"), 5, "F120:1");
  run.source("c.y4m", fast);
  run.options.shot_format = ShotFormat::edl;
  const HeardLog told(LogLevel::info);
  CHECK(run.list() == 1);
  ShotsEdl again;
  text = again.header() + again.add(a);
  CHECK(run.printed == text + again.add(b));
  CHECK(HeardLog::any("take --format otio, csv or json"));
}

TEST_CASE("why shots begin where they do is explained on a page, and the list is as without it") {
  ShotsRun run;
  run.source("a.y4m", clip_run::shots({8, 13}));
  run.list();
  const std::vector<Json> records = run.records;
  run.options.explain = run.folder / "page.html";
  CHECK(run.list() == 0);
  CHECK(run.records == records);
  const std::string page = io::read_file(run.options.explain);
  CHECK(
      page.find("21 frames, 1 change of shot. The line is the highest score in each of up to "
                "1000 parts of the video. Dots at 0 are fades, dissolves and wipes, which are not "
                "found by this score.") != std::string::npos);
  CHECK(page.find(">0.800 s, frame 8: cut, 1.139</figcaption>") != std::string::npos);
  // Whether a change would be stitched, where sound decides, too.
  run.options.recipe.stitch_sound = true;
  for (const auto& [threshold, end] :
       {std::pair{0.6, ": not stitched (from 0.600 on)</figcaption>"},
        {-1.0, ": stitched (from -1.000 on)</figcaption>"}}) {
    run.options.recipe.stitch_threshold = threshold;
    CHECK(run.list() == 0);
    const std::string with = io::read_file(run.options.explain);
    const std::size_t at = with.find(">0.800 s, frame 8: cut, 1.139; likeness ");
    REQUIRE(at != std::string::npos);
    CHECK(with.find(end, at) < at + 100);
  }
}

TEST_CASE("scores of thresholds are a list, or from, to and step; at most a hundred") {
  using Scores = std::vector<double>;
  CHECK(parse_thresholds("0.3") == Scores{0.3});
  CHECK(parse_thresholds("0.3,0.2,1e1") == Scores{0.3, 0.2, 10});
  CHECK(parse_thresholds("0.3:0.5:0.1") == Scores{0.3, 0.4, 0.5});
  CHECK(parse_thresholds("0.3:0.3:0.1") == Scores{0.3});
  CHECK(parse_thresholds("0.3:0.59:0.1") == Scores{0.3, 0.4, 0.5});
  CHECK(parse_thresholds("1:100:1").size() == 100);
  std::string many = "1";
  for (int i = 1; i < 100; ++i)
    many += ",1";
  CHECK(parse_thresholds(many).size() == 100);
  const std::string too_many = many + ",1";
  for (const std::string& wrong :
       {std::string(), std::string("x"), std::string("0.3,"), std::string(",0.3"), std::string("0"),
        std::string("-1"), std::string("inf"), std::string("nan"), std::string("0.3 "),
        std::string("0.5:0.3:0.1"), std::string("0.3:0.5"), std::string("0.3:0.5:0.1:0.1"),
        std::string("0.3:0.5:0"), std::string("1:101:1"), std::string("1e-7:1e-7:1"), too_many}) {
    CAPTURE(wrong);
    CHECK(usage_error([&] { parse_thresholds(wrong); }) ==
          "--thresholds: cannot read '" + wrong +
              "' as scores; write at most 100 scores above 0, as 0.3,0.4 or as 0.2:0.6:0.05 (from, "
              "to, step)");
  }
}

TEST_CASE("chapters count from where the container begins, if that is before the first frame") {
  NEED_FFMPEG();
  ShotsRun run;
  const std::string plain = media_files::path("plain.mp4");
  run.options.inputs = {run.folder / "late.mkv"};
  media_files::run("ffmpeg -v error -nostdin -itsoffset 0.5 -i '" + plain + "' -i '" + plain +
                   "' -map 0:v -map 1:a -c copy '" + run.options.inputs[0] + "'");
  run.options.shot_format = ShotFormat::chapters;
  CHECK(run.list() == 0);
  CHECK_THAT(run.printed,
             Catch::Contains("TIMEBASE=1/1000\nSTART=5") && Catch::Contains("\nEND=25"));
}
