// Where clips begin and end: fades, networks, stitched shots, several threads, broken runs.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "clip/cut/shot_finder.h"
#include "curate/shots/window_detector.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;
using clip_run::Lines;

namespace {

/// A video of one letter a frame, ten frames a second: 'x' is bright, and a network's answer to it
/// is 0.75; else 0.
std::string letters(const std::string& frames) {
  return clip_run::y4m(64, 36, 10, static_cast<int>(frames.size()), [&](int i, int, int) {
    return drawing::Yuv{frames[static_cast<std::size_t>(i)] == 'x' ? 235.0 : 16.0, 128, 128};
  });
}

std::vector<float> answers_to(std::span<const std::uint8_t> frames) {
  std::vector<float> answers;
  constexpr std::size_t kFrame = std::size_t{3} * curate::kChangeWidth * curate::kChangeHeight;
  for (std::size_t at = 0; at < frames.size(); at += kFrame)
    answers.push_back(frames[at] > 128 ? 0.75F : 0);
  return answers;
}

/// Clips and what is left out: "0-18 start cut 0.75; 18-20 fade".
std::string told(const ClipRun& run) {
  std::string text;
  for (const Json& clip : run.clips())
    text += vfm::format("{}-{} {} {} {}; ", clip["pts_begin"].get<int>(),
                        clip["pts_end"].get<int>(), clip["start_type"].get<std::string>(),
                        clip["end_type"].get<std::string>(), clip["end_score"].get<double>());
  const Json index = run.index();
  for (const Json& span : index.at("left_out"))
    text += vfm::format("{}-{} {}; ", span["pts_begin"].get<int>(), span["pts_end"].get<int>(),
                        span["reason"].get<std::string>());
  for (const Json& cut : index.at("cuts"))
    text += vfm::format("{} {} {} {}; ", cut["type"].get<std::string>(), cut["frame"].get<int>(),
                        cut["pts"].get<int>(), cut["score"].get<double>());
  return text;
}

/// What a network's changes make of it.
std::string network(const std::string& frames, double least = 0) {
  ClipRun run;
  run.source("a.y4m", letters(frames));
  run.options.recipe.shots.detector = curate::Detector::transnetv2;
  run.options.recipe.stitch = false;
  run.options.recipe.min_seconds = least;
  run.options.recipe.detector_model = Json{{"name", "n"}, {"hash", "h"}};
  run.options.change_model = answers_to;
  try {
    const long errors = run.run();
    CHECK(errors == 0);
    CHECK(run.clips()[0].at("detector_model") ==
          Json{{"name", "n"}, {"hash", "h"}, {"threshold", 0.5}});
  } catch (const Error& error) {
    CHECK(error.what() == std::string("no clips: nothing in the input could be used"));
    CHECK(run.faults() == Lines{"a.y4m: no clip: every shot is too short (empty)"});
  }
  return told(run);
}

/// Frames of a texture at so many levels, one after the other: 1 as it is, 0 black.
struct Faded {
  std::uint64_t seed;
  std::vector<double> levels;
};
std::vector<double> ramp(double from, double to, int frames) {
  std::vector<double> levels;
  for (int i = 0; i < frames; ++i)
    levels.push_back(from + (to - from) * (i + 1) / (frames + 1));
  return levels;
}
std::string faded(const std::vector<Faded>& parts) {
  std::vector<std::pair<drawing::Texture, double>> frames;
  for (const Faded& part : parts)
    for (const double level : part.levels)
      frames.emplace_back(drawing::Texture(part.seed, 12, {40, 78, 78}), level);
  return clip_run::y4m(64, 48, 10, static_cast<int>(frames.size()), [&](int i, int x, int y) {
    const auto& [texture, level] = frames[static_cast<std::size_t>(i)];
    return drawing::mix({16, 128, 128}, texture.at(x + i, y), level);
  });
}

/// `again`: by several threads, too, with and without memory for what waits.
std::string cut_faded(const std::vector<Faded>& parts, double least, bool again = false) {
  ClipRun run;
  run.source("a.y4m", faded(parts));
  run.options.recipe.min_seconds = least;
  run.options.verify = true;
  CHECK(run.run() == 0);
  const std::string text = told(run);
  const auto before = run.samples();
  if (!again) return text;
  for (const std::uint64_t bytes :
       {std::uint64_t{256} << 20, std::uint64_t{20'000}, std::uint64_t{0}}) {
    run.options.force = true;
    run.options.verify = false;  // whose frames keep their pixels
    run.options.ahead_bytes = bytes;
    CHECK(run.run(3) == 0);
    const auto after = run.samples();
    REQUIRE(after.size() == before.size());
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(*after[i].find("mp4") == *before[i].find("mp4"));
    CHECK(told(run) == text);
  }
  return text;
}

const std::vector<double> kWhole(20, 1.0);

}  // namespace

TEST_CASE("frames of a network's change are in no clip, however long it lasts") {
  const auto repeated = [](char letter, int count) {
    return std::string(static_cast<std::size_t>(count), letter);
  };
  const std::string still = repeated('.', 30), three = repeated('.', 3);
  CHECK(network(still + "x" + still) == "0-31 start cut 0.75; 31-61 cut end 0; cut 31 31 0.75; ");
  CHECK(network(still + "xx" + still) ==
        "0-31 start transition 0.75; 32-62 transition end 0; 31-32 transition; "
        "transition 31 31 0.75; ");
  CHECK(network(still + repeated('x', 250) + still) ==
        "0-31 start transition 1; 280-310 transition end 0; 31-280 transition; "
        "transition 259 259 0.75; ");
  // A first shot that is too short is left out, also before a change whose end is not known yet.
  CHECK(network(three + repeated('x', 250) + still, 1) ==
        "253-283 transition end 0; 0-4 short; 4-253 transition; transition 232 232 0.75; ");
  CHECK(network(three + repeated('x', 250) + still, 0.4) ==
        "0-4 start transition 1; 253-283 transition end 0; 4-253 transition; "
        "transition 232 232 0.75; ");
  CHECK(network(three + repeated('x', 20), 1) ==
        "0-4 short; 4-23 transition; transition 13 13 0.75; ");
  CHECK(network(repeated('x', 20) + still) == "20-50 transition end 0; 0-20 transition; ");
  CHECK(network(repeated('x', 250) + still, 1) == "250-280 transition end 0; 0-250 transition; ");
}

TEST_CASE("frames of one colour between fades are in no clip; a lone short shot is one") {
  const std::vector<double> black(150, 0), few(5, 1.0);
  const std::vector<Faded> short_one = {{1, few}, {1, ramp(1, 0, 5)}, {1, black}};
  CHECK(cut_faded({{1, kWhole},
                   {1, ramp(1, 0, 8)},
                   {1, std::vector<double>(8, 0)},
                   {2, ramp(0, 1, 8)},
                   {2, kWhole}},
                  0, true) == "0-28 start fade 1; 36-64 fade end 0; 28-36 fade; fade 36 36 1; ");
  CHECK(cut_faded({{1, kWhole}, {1, ramp(1, 0, 5)}, {1, black}, {2, kWhole}}, 1.5) ==
        "0-25 start fade 1; 175-195 fade end 0; 25-175 fade; fade 175 175 1; ");
  // A first shot that is too short waits, before a long fade, for another shot to come.
  CHECK(cut_faded(short_one, 5, true) == "0-10 start fade 1; 10-160 fade; ");
  std::vector<Faded> two = short_one;
  two.push_back({2, kWhole});
  CHECK(cut_faded(two, 1.1) == "160-180 fade end 0; 0-10 short; 10-160 fade; fade 160 160 1; ");
  CHECK(cut_faded(two, 1) ==
        "0-10 start fade 1; 160-180 fade end 0; 10-160 fade; fade 160 160 1; ");
  CHECK(cut_faded({{1, std::vector<double>(6, 0)}, {1, ramp(0, 1, 6)}, {1, few}}, 5) ==
        "6-17 fade end 0; 0-6 fade; ");
}

TEST_CASE("a fade out of black before the first shot is none of the changes that are stitched") {
  ClipRun run;
  run.source("a.y4m",
             faded({{1, std::vector<double>(6, 0)}, {1, ramp(0, 1, 6)}, {1, kWhole}, {2, kWhole}}));
  run.options.recipe.stitch_sound = true;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_begin") == "6 32");
  const Json cuts = run.index().at("cuts");
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].at("frame") == 32);
  CHECK(cuts[0].contains("likeness"));
}

TEST_CASE("shots are stitched from the threshold on, and told with their likeness") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({12, 9, 13}));
  run.options.recipe.stitch_threshold = -1;
  run.options.recipe.stitch_sound = true;  // of which there is none
  run.options.verify = true;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_end") == "34");
  CHECK(run.each("shots") == "3");
  CHECK(run.each("sound_at_joins") == "null");
  const Json cuts = run.index().at("cuts"), joins = run.clips()[0].at("joins");
  REQUIRE(cuts.size() == 2);
  REQUIRE(joins.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const double likeness = cuts[i].at("likeness");
    CHECK(likeness < 0.6);
    CHECK(likeness > -1);
    const Json join = {{"likeness", likeness}, {"sound", nullptr}, {"threshold", -1.0}};
    Json cut = {{"frame", i == 0 ? 12 : 21},
                {"pts", i == 0 ? 12 : 21},
                {"time", i == 0 ? 1.2 : 2.1},
                {"type", "cut"},
                {"score", cuts[i].at("score")}};
    cut.update(join);
    CHECK(cuts[i] == cut);
    Json place = {{"pts", i == 0 ? 12 : 21}, {"time", i == 0 ? 1.2 : 2.1}};
    place.update(join);
    CHECK(joins[i] == place);
  }
  // Where that is not likeness enough, and where nobody asks.
  run.options.recipe.stitch_threshold = 0.9;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_end") == "12 21 34");
  CHECK(run.each("joins") == "[] [] []");
  CHECK(run.index().at("cuts")[0].at("threshold") == 0.9);
  run.options.recipe.stitch = false;
  run.options.recipe.stitch_threshold = -1;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_end") == "12 21 34");
  CHECK(run.each("joins") == R"("absent" "absent" "absent")");
}

TEST_CASE("two shots are stitched across so many frames that are in none, and not across more") {
  for (const int frames : {13, 14}) {
    ClipRun run;
    run.source("a.y4m",
               letters(std::string(30, '.') + std::string(static_cast<std::size_t>(frames), 'x') +
                       std::string(30, '.')));
    run.options.recipe.shots.detector = curate::Detector::transnetv2;
    run.options.recipe.stitch_threshold = -10;
    run.options.change_model = answers_to;
    CHECK(run.run() == 0);
    // The first frame of a network's change is the last one of a shot.
    CHECK(run.each("pts_begin") == (frames == 13 ? "0" : "0 44"));
    CHECK(run.each("pts_end") == (frames == 13 ? "73" : "31 74"));
    CHECK(run.index().at("left_out").size() == (frames == 13 ? 0 : 1));
  }
}

TEST_CASE("one slot or several, and a run that was broken off, give the same bytes") {
  for (const ClipFormat format : {ClipFormat::shards, ClipFormat::files})
    for (const double stride : {0.0, 0.7}) {
      ClipRun run;
      run.source("a.y4m", clip_run::shots({12, 9, 13, 8}));
      run.options.format = format;
      run.options.shard_bytes = 1;
      run.options.recipe.stride = stride;
      CHECK(run.run() == 0);
      const std::string out = run.options.directory + "/";
      const auto contents = [&] {
        std::map<std::string, std::string> all;
        for (const std::string& name : run.files())
          all[name] = io::read_file(out + name);
        return all;
      };
      const auto whole = contents();
      run.options.force = true;
      CHECK(run.run(4) == 0);
      CHECK(contents() == whole);
      run.options.force = false;
      // As a kill leaves it: the list is not there, nor is the last clip.
      const Json index = run.index();
      const std::string name = index.at("source_hash").get<std::string>().substr(0, 16);
      const auto break_off = [&](bool spoiled) {
        std::string notes, first;
        if (format == ClipFormat::shards) {
          notes = dump_json(index.at("settings")) + "\n";
          const std::string last = index.at("shards").back().at("name");
          std::filesystem::remove(out + last);
          std::filesystem::remove(out + name + ".json");
          first = out + name + "-00000.tar";
          if (spoiled) {  // by clips of other spans
            std::filesystem::remove(first);
            for (const char* end : {".tar", ".tar.idx", ".idx"})
              std::filesystem::copy_file(out + name + "-00001" + end, out + name + "-00000" + end,
                                         std::filesystem::copy_options::overwrite_existing);
          }
          run.folder.write("out/." + name + ".settings", notes);
        } else {
          notes = dump_json(Json{{"settings", index.at("settings")}}) + "\n";
          const Json& samples = index.at("samples");
          for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
            Json entry = samples[i];
            const Json facts =
                parse_json(whole.at(entry.at("key").get<std::string>() + ".json"), "it");
            notes += dump_json(entry) + "\n";
            entry["begin"] = facts.at("pts_begin").get<int>() + (spoiled && i == 1 ? 1 : 0);
            entry["end"] = facts.at("pts_end");
            notes += dump_json(entry) + "\n";
          }
          std::filesystem::remove(out + name + ".files");
          first = out + samples[0].at("key").get<std::string>() + ".mp4";
          run.folder.write("out/." + name + ".journal", notes);
        }
        return first;
      };
      for (const bool spoiled : {false, true}) {
        CAPTURE(static_cast<int>(format), stride, spoiled);
        const std::string first = break_off(spoiled);
        const auto past = std::filesystem::last_write_time(first) - std::chrono::hours(1);
        std::filesystem::last_write_time(first, past);
        CHECK(run.run() == 0);
        CHECK(contents() == whole);
        CHECK((std::filesystem::last_write_time(first) == past) == !spoiled);
      }
    }
}

TEST_CASE("a network sees frames upright, scaled as the ffmpeg program does") {
  media::StreamInfo info;
  info.rotation = 90;
  info.mirror = true;
  curate::ShotOptions options;
  options.detector = curate::Detector::transnetv2;
  std::vector<std::uint8_t> seen;
  ShotFinder finder(
      options,
      [&](std::span<const std::uint8_t> frames) {
        const std::size_t size = frames.size() / curate::WindowDetector::kWindow;
        seen.assign(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(size));
        return std::vector<float>(curate::WindowDetector::kWindow, 0.9F);
      },
      info);
  const drawing::Texture texture(3);
  media::Frame frame = media::copy_frame(drawing::frame(200, 160, texture.shifted(0, 0)));
  curate::FrameFeatures features;
  curate::compute_features(frame, features);
  for (frame.index = 0; frame.index < 3; ++frame.index)
    finder.push(frame, features);
  finder.finish();
  media::RgbImage wanted;
  media::Scaler().to_rgb(frame,
                         {.rotation = 90,
                          .mirror = true,
                          .width = curate::kChangeWidth,
                          .height = curate::kChangeHeight,
                          .bicubic = true},
                         wanted);
  CHECK(seen == wanted.pixels);
}

TEST_CASE("frames that are too large to wait for their shots are decoded once more") {
  // Grey bands, 5.3 megapixels a frame: another order of them is another shot.
  constexpr int kWidth = 2656, kHeight = 2000, kBand = 125;
  std::string video = vfm::format("YUV4MPEG2 W{} H{} F10:1 Ip A1:1 Cmono\n", kWidth, kHeight);
  for (int i = 0; i < 7; ++i) {
    video += "FRAME\n";
    for (int band = 0; band < kHeight / kBand; ++band)
      video.append(std::size_t{kWidth} * kBand,
                   static_cast<char>(i < 4 ? 40 + 10 * band + i : 40 + 60 * (band % 4) - i));
  }
  ClipRun run;
  run.source("a.y4m", video);
  run.options.recipe.size.short_side = 32;
  run.options.verify = true;
  CHECK(run.run() == 0);
  CHECK(run.each("frames") == "4 3");
  CHECK(run.each("verified") == "true true");
  CHECK(run.each("width") == "42 42");
}

TEST_CASE("a span far behind what is before it is gone to, by frames it is decoded to") {
  ClipRun run;
  run.source("a.y4m", clip_run::y4m(32, 24, 2, 60, [](int i, int x, int) {
               return drawing::Yuv{40.0 + 3 * i + x, 128, 128};
             }));
  run.options.recipe.given = true;
  run.options.spans = {run.folder / "spans.csv"};
  run.options.verify = true;
  const auto cut = [&](const std::string& spans) {
    run.folder.write("spans.csv", spans);
    CHECK(run.run() == 0);
    const Json index = run.index();
    CHECK(index.at("seconds") == 30.0);
    return run.each("pts_begin") + " " + run.each("pts_end") + " of " +
           dump_json(index.at("frames"));
  };
  // The first frame, those of a second before the span, its own and the one behind it. The file
  // names no source: it is of the only input.
  CHECK(cut("begin,end\n20,22\n") == "40 44 of 8");
  CHECK(cut("begin,end\n10.5,11\n") == "21 22 of 5");
  CHECK(cut("begin,end\n10,11\n") == "20 22 of 23");
  CHECK(cut("begin,end\n1,2\n20,21\n") == "2 40 4 42 of 10");
  CHECK(cut("begin_frame,end_frame\n40,44\n") == "40 44 of 45");
}
