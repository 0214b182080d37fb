// Which of several sources show the same, by their signatures.
// SPDX-License-Identifier: Apache-2.0
#include "clip/unique/unique.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "clip/unique/signature_file.h"
#include "io/atomic_file.h"
#include "support/heard_log.h"
#include "support/parts.h"
#include "unit/clip/clip_run.h"
#include "unit/curate/moving_scene.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;
using clip_run::Lines;

namespace {

/// Moving discs at eight frames a second, from `begin` on; `left` of the picture is cut off.
std::string discs_video(std::uint64_t seed, double begin, double seconds, int width = 64,
                        double left = 0) {
  const drawing::MovingScene scene = drawing::discs(seed, 100 + seed);
  return clip_run::y4m(width, 36, 8, static_cast<int>(8 * seconds), [&](int i, int x, int y) {
    const double level =
        scene(left + (1 - left) * (x + 0.5) / width, (y + 0.5) / 36, begin + i / 8.0);
    return drawing::Yuv{16 + level * 219 / 255, 128, 128};
  });
}

std::vector<std::string> paths_of(const ClipRun& run) {
  std::vector<std::string> paths;
  for (const Json& record : run.records) {
    paths.push_back(record.at("path"));
    paths.back() = replaced(paths.back(), run.folder.path + "/", "");
  }
  return paths;
}

}  // namespace

TEST_CASE("of sources that show the same the longest goes on, and the lists say why") {
  ClipRun run;
  run.source("part.y4m", discs_video(1, 4, 8));
  run.source("a.y4m", discs_video(1, 0, 15));
  run.source("same.y4m", discs_video(1, 0, 15));
  run.source("other.y4m", discs_video(2, 0, 9));
  run.source("x.bmp", "a picture, whatever is in it");
  run.source("bad.mp4", "no video");
  run.source("bad-too.mp4", "no video");
  run.options.inputs.push_back(run.folder / "none.mp4");
  run.folder.write("list.jsonl",
                   "{\"kind\":\"mine\",\"path\":\"x\"}\n{\"kind\":\"video\",\"path\":\"" +
                       run.folder / "cropped.y4m" + "\",\"license\":\"free\"}\n");
  run.folder.write("cropped.y4m", discs_video(1, 0, 15, 56, 0.125));
  run.options.inputs.push_back(run.folder / "list.jsonl");
  CHECK(run.run(find_unique, 2) == 3);
  CHECK(paths_of(run) == Lines{"a.y4m", "other.y4m", "x.bmp", "x"});
  CHECK(run.records[2] == Json{{"kind", "video"}, {"path", run.folder / "x.bmp"}});
  const Lines faults = run.faults();
  REQUIRE(faults.size() == 3);
  CHECK_THAT(faults[0], Catch::StartsWith("bad.mp4: cannot open 'bad.mp4'"));
  CHECK(faults[1] ==
        "bad-too.mp4: has the same contents as 'bad.mp4', which could not be used (other)");
  CHECK_THAT(faults[2],
             Catch::StartsWith("none.mp4: cannot open 'none.mp4'") && Catch::EndsWith("(open)"));

  const std::string out = run.folder / "out/";
  const auto source = [&](const char* name, const Json& facts) {
    Json line = {{"path", run.folder / name},
                 {"source_hash", io::hash_file(run.folder / name)},
                 {"bytes", std::filesystem::file_size(run.folder / name)}};
    line.update(facts);
    return line;
  };
  const auto left_out = [&](const char* kind, const std::string& reason) {
    return Json{{"group", 0},
                {"stays", false},
                {"duplicate_of", run.folder / "a.y4m"},
                {"kind", kind},
                {"reason", reason}};
  };
  std::vector<Json> lines = clip_run::json_lines(out + "sources.jsonl");
  REQUIRE(lines.size() == 6);
  Json part = {{"seconds", 8.0}, {"width", 64}, {"height", 36}};
  part.update(left_out("near", "'" + run.folder / "a.y4m" + "' shows 100 % of it"));
  CHECK(lines[0] == source("part.y4m", part));
  CHECK(lines[1] ==
        source("a.y4m",
               {{"seconds", 15.0}, {"width", 64}, {"height", 36}, {"group", 0}, {"stays", true}}));
  Json same = {{"seconds", 15.0}, {"width", 64}, {"height", 36}};
  same.update(left_out("exact", "the same bytes as '" + run.folder / "a.y4m" + "'"));
  CHECK(lines[2] == source("same.y4m", same));
  CHECK(
      lines[3] ==
      source(
          "other.y4m",
          {{"seconds", 9.0}, {"width", 64}, {"height", 36}, {"group", nullptr}, {"stays", true}}));
  CHECK(lines[4] == source("x.bmp", {{"seconds", nullptr},
                                     {"width", nullptr},
                                     {"height", nullptr},
                                     {"group", nullptr},
                                     {"stays", true}}));
  CHECK(lines[5].at("kind") == "near");
  CHECK(lines[5].at("width") == 56);

  const std::vector<Json> pairs = clip_run::json_lines(out + "duplicates.jsonl");
  REQUIRE(pairs.size() == 4);
  CHECK(pairs[0] == Json{{"kind", "exact"},
                         {"first", run.folder / "a.y4m"},
                         {"second", run.folder / "same.y4m"}});
  // part and a, part and cropped, a and cropped.
  const Json& first = pairs[1];
  CHECK(first.at("first") == run.folder / "part.y4m");
  CHECK(first.at("second") == run.folder / "a.y4m");
  CHECK(first.at("second_begin").get<double>() - first.at("first_begin").get<double>() ==
        Approx(4).margin(0.1));
  CHECK(first.at("first_end").get<double>() == Approx(8).margin(0.5));
  CHECK(first.at("second_end").get<double>() == Approx(12).margin(0.5));
  CHECK(first.at("score").get<double>() > 0.9);
  for (const auto& [edge, at] : {std::pair{0, 0.0}, {1, 0.0}, {2, 1.0}, {3, 1.0}})
    CHECK(first.at("crop")[static_cast<std::size_t>(edge)].get<double>() ==
          Approx(at).margin(0.03));
  const Json& last = pairs[3];
  CHECK(last.at("first") == run.folder / "a.y4m");
  CHECK(last.at("second") == run.folder / "cropped.y4m");
  CHECK(last.at("first_begin").get<double>() == Approx(last.at("second_begin").get<double>()));
  for (const auto& [edge, at] : {std::pair{0, 0.125}, {1, 0.0}, {2, 1.0}, {3, 1.0}})
    CHECK(last.at("crop")[static_cast<std::size_t>(edge)].get<double>() == Approx(at).margin(0.04));

  // Once more, with one thread: the same, and nothing is decoded.
  const std::string signature = signature_path(run.options.directory, lines[3].at("source_hash"));
  const auto written = std::filesystem::last_write_time(signature);
  const std::string text = io::read_file(out + "duplicates.jsonl");
  run.options.inputs.erase(run.options.inputs.begin() + 5, run.options.inputs.begin() + 8);
  CHECK(run.run(find_unique) == 0);
  CHECK(run.records.size() == 4);
  CHECK(io::read_file(out + "duplicates.jsonl") == text);
  CHECK(clip_run::json_lines(out + "sources.jsonl") == lines);
  CHECK(std::filesystem::last_write_time(signature) == written);
  CHECK_FALSE(std::filesystem::exists(out + "errors.jsonl"));
  // Without anything in common there is no list of pairs.
  run.options.inputs = {run.folder / "a.y4m", run.folder / "other.y4m"};
  CHECK(run.run(find_unique) == 0);
  CHECK(run.records.size() == 2);
  CHECK_FALSE(std::filesystem::exists(out + "duplicates.jsonl"));
  run.options.force = true;
  CHECK(run.run(find_unique) == 0);
  CHECK(std::filesystem::last_write_time(signature) != written);
  run.options.force = false;
  CHECK(io::read_file(signature).find("\"stream\":-1,\"deinterlace\":true") != std::string::npos);
  run.options.recipe.stream = 0;
  run.options.recipe.deinterlace = false;
  CHECK(run.run(find_unique) == 0);
  CHECK(io::read_file(signature).find("\"stream\":0,\"deinterlace\":false") != std::string::npos);
}

TEST_CASE("how much of a source another one must show is for the user to say") {
  ClipRun run;
  run.source("a.y4m", discs_video(1, 0, 12));
  run.source("b.y4m", discs_video(1, 5, 14));  // of its 14 seconds 7 are in a
  const HeardLog told(LogLevel::info);
  CHECK(run.run(find_unique) == 0);
  CHECK(paths_of(run) == Lines{"a.y4m", "b.y4m"});
  run.options.unique_share = 0.5;
  CHECK(run.run(find_unique) == 0);
  CHECK(paths_of(run) == Lines{"b.y4m"});
  CHECK(HeardLog::any("'" + run.folder / "a.y4m" + "' is left out: '" + run.folder / "b.y4m" +
                      "' shows 58 % of it"));
}

TEST_CASE("without a source that can be used nothing is chosen") {
  ClipRun run;
  run.source("bad.mp4", "no video");
  CHECK_THROWS_WITH(run.run(find_unique), "nothing in the input could be used");
  run.options.inputs = {run.folder / "list.jsonl"};
  run.folder.write("list.jsonl", "");
  CHECK_THROWS_WITH(run.run(find_unique), "no videos in the input");
  run.folder.write("list.jsonl", "{\"kind\":\"mine\"}\n");
  CHECK(run.run(find_unique) == 0);
  CHECK(run.records == std::vector<Json>{{{"kind", "mine"}}});
}

TEST_CASE("a signature is used again if it is whole, and of this source and these settings") {
  const TemporaryFolder folder;
  folder.write("a.y4m", clip_run::y4m(40, 30, 8, 21, [](int i, int, int) {
                 return drawing::Yuv{16.0 + 10 * i, 128, 128};
               }));
  const ClipSource source{folder / "a.y4m", "h1"};
  SignatureWork work{folder.path, {}};
  const SignatureFacts facts = make_signature(source, work, no_progress());
  CHECK(facts.seconds == 21 / 8.0);
  CHECK(facts.width == 40);
  CHECK(facts.height == 30);
  CHECK(facts.damaged == 0);
  const std::string path = signature_path(folder.path, "h1");
  CHECK(path == folder / "h1.signature");
  const std::string whole = io::read_file(path);
  REQUIRE(whole.size() == 11 * 2048 + 1024);  // the last picture is half there
  const SignatureFile file(path);
  REQUIRE(file.pictures().size() == 11);
  CHECK(file.pictures()[0][7] == Approx(5 * 255 / 219.0 * 256).margin(3));
  CHECK(file.pictures()[10][1023] == Approx(200 * 255 / 219.0 * 256).margin(3));
  const std::string tail = whole.substr(whole.size() - 1024);
  CHECK(tail.back() == '\n');
  CHECK(tail.find("} ") != std::string::npos);
  CHECK(parse_json(tail, "it") == Json{{"kind", "signature"},
                                       {"version", 2},
                                       {"source_hash", "h1"},
                                       {"stream", -1},
                                       {"deinterlace", true},
                                       {"pictures", 11},
                                       {"seconds", 2.625},
                                       {"width", 40},
                                       {"height", 30},
                                       {"damaged", 0}});
  // What is there is believed.
  Json told = parse_json(tail, "it");
  told["seconds"] = 7.5;
  told["damaged"] = 3;
  const auto write = [&](const Json& header, const std::string& more = "") {
    std::string text = dump_json(header);
    text.resize(1023, ' ');
    io::write_file(path, whole.substr(0, whole.size() - 1024) + more + text + "\n");
  };
  const auto seconds = [&] { return make_signature(source, work, no_progress()).seconds; };
  write(told);
  CHECK(seconds() == 7.5);
  CHECK(make_signature(source, work, no_progress()).damaged == 3);
  work.force = true;
  CHECK(seconds() == 2.625);
  work.force = false;
  CHECK(io::read_file(path) == whole);
  const auto is_made_anew = [&] {
    CHECK(seconds() == 2.625);
    return io::read_file(path) == whole;
  };
  for (const auto& [name, value] : std::vector<std::pair<const char*, Json>>{{"version", 1},
                                                                             {"source_hash", "h2"},
                                                                             {"stream", 0},
                                                                             {"deinterlace", false},
                                                                             {"pictures", 10},
                                                                             {"pictures", -1},
                                                                             {"width", "40"}}) {
    CAPTURE(name);
    Json other = told;
    other[name] = value;
    write(other);
    CHECK(is_made_anew());
  }
  write(told, "x");
  CHECK(is_made_anew());
  io::write_file(path, "short");
  CHECK(is_made_anew());
  work.decode.deinterlace = false;
  CHECK(seconds() == 2.625);
  CHECK(io::read_file(path) != whole);
  for (const std::size_t bytes : {1023, 1025, 1024 + 2047}) {
    io::write_file(folder / "x", std::string(bytes, ' '));
    CHECK_THROWS_WITH(SignatureFile(folder / "x"), "'" + folder / "x" + "' is not a signature");
  }
  io::write_file(folder / "x", std::string(1024, ' '));
  CHECK(SignatureFile(folder / "x").pictures().empty());
}
