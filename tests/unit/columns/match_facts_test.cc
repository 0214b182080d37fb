// What is told of a match, and where it is read.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/match_facts.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "support/temporary_folder.h"
#include "unit/columns/vector_shards.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// Of a sample whose windows have these vectors of two numbers.
Json window_of(const Vector& vectors, const Json& facts, const Vector& query) {
  const auto rows = static_cast<std::int64_t>(vectors.size()) / 2;
  const shard::Sample sample{"k", {{"windows.npy", io::make_npy_half({rows, 2}, vectors)}}};
  Json line = Json::object();
  add_window(line, sample, facts, query);
  return line;
}

Json windows_from(const Json& begins) {
  return {{"video_windows", {{"begin", begins}}}, {"seconds", 7.5}};
}

}  // namespace

TEST_CASE("the nearest window of a clip is told, the first of equals") {
  const Json three = windows_from({0, 2.5, 5});
  CHECK(window_of({0, 1, 3, 4, 1, 0}, three, {0.6f, 0.8f}) ==
        Json{{"window", {{"number", 1}, {"begin", 2.5}, {"end", 5}, {"score", 1}}}});
  CHECK(window_of({0, 1, 3, 4, 1, 0}, three, {1, 0}) ==
        Json{{"window", {{"number", 2}, {"begin", 5}, {"end", 7.5}, {"score", 1}}}});
  CHECK(window_of({0, 1, 0, 2, -1, 0}, three, {0.6f, 0.8f}) ==
        Json{{"window", {{"number", 0}, {"begin", 0}, {"end", 2.5}, {"score", 0.8}}}});
  CHECK(window_of({-1, 0}, windows_from({0}), {1, 0}) ==
        Json{{"window", {{"number", 0}, {"begin", 0}, {"end", 7.5}, {"score", -1}}}});
  CHECK(window_of({1, 0}, {{"video_windows", {{"begin", {0}}}}, {"seconds", "7"}}, {1, 0}) ==
        Json{{"window", {{"number", 0}, {"begin", 0}, {"score", 1}}}});
  CHECK(window_of({}, windows_from(Json::array()), {1, 0}).empty());
  Json line = {{"key", "k"}};
  add_window(line, {"k", {{"txt", "no windows"}}}, three, {1, 0});
  CHECK(line == Json{{"key", "k"}});
}

TEST_CASE("windows that do not fit their json are refused") {
  const std::string why =
      "k.windows.npy has 4 numbers, which are not 2 for each of the windows in its json";
  const Vector two{1, 0, 0, 1};
  for (const Json& facts :
       {Json::object(), Json{{"video_windows", 7}}, windows_from({0}), windows_from({0, 1, 2}),
        windows_from(7), Json{{"video_windows", {{"seconds", 2}}}}})
    CHECK_THROWS_WITH(window_of(two, facts, {1, 0}), why);
  CHECK_THROWS_WITH(window_of({}, windows_from(Json::array()), {}), Catch::Contains("are not 0"));
}

TEST_CASE("a match has the facts of its sample that it lacks, and its score to four digits") {
  Json line = {{"caption", "mine"}};
  add_facts(line,
            {{"begin", 1}, {"end", 2}, {"caption", "yours"}, {"source", "v.mp4"}, {"fps", 8}});
  CHECK(dump_json(line) == R"({"caption":"mine","source":"v.mp4","begin":1,"end":2})");
  CHECK(dump_json(match_line(2, 0.123456, {{"key", "k"}})) ==
        R"({"kind":"match","rank":2,"score":0.1235,"key":"k"})");
  CHECK(match_line(1, -0.00004, Json::object())["score"] == 0);
}

TEST_CASE("small columns are read for a match instead of the tar with videos") {
  io::Record record;
  record.json = Json{{"path", "a.tar"},
                     {"columns", {{"clip", "a.tar"}, {"caption", "c.tar"}, {"embed", "e.tar"}}}};
  CHECK(searched_tars(record) == std::vector<std::string>{"c.tar", "e.tar"});
  record.json["columns"].erase("embed");
  CHECK(searched_tars(record) == std::vector<std::string>{"a.tar", "c.tar"});
}

TEST_CASE("the facts of a match come from all of its tars, wherever its key stands in them") {
  const TemporaryFolder folder;
  const std::string clip = folder / "a.tar", embed = folder / "a.embed.tar",
                    captions = folder / "a.caption.tar";
  const auto json_sample = [](const std::string& key, const Json& json) {
    return shard::Sample{key, {{"json", dump_json(json)}}};
  };
  write_tar(clip, {json_sample("k", {{"source", "k.mp4"}, {"begin", 1}}),
                   json_sample("l", {{"source", "l.mp4"}, {"begin", 2}, {"end", 3}})});
  write_tar(embed, {vector_sample("k", axis(1)),
                    vector_sample("l", axis(2), {{"video_encoder", made_encoder()}, {"end", 9}})});
  write_tar(captions, {{"l", {{"txt", "of l"}}}, {"k", {{"txt", "of k"}}}});
  io::Record record;
  record.json =
      Json{{"path", clip}, {"columns", {{"clip", clip}, {"caption", captions}, {"embed", embed}}}};
  const auto facts = [&](std::int64_t row) {
    return dump_json(match_facts(record, row, VectorKind::video, axis(1), {}));
  };
  const std::string path = dump_json(Json(clip));
  CHECK(facts(0) ==
        R"({"key":"k","path":)" + path + R"(,"caption":"of k","source":"k.mp4","begin":1})");
  CHECK(facts(1) == R"({"key":"l","path":)" + path +
                        R"(,"caption":"of l","end":9,"source":"l.mp4","begin":2})");
  // Without an index beside it the tar with clips is not read through.
  std::filesystem::remove(clip + ".idx");
  CHECK(facts(0) == R"({"key":"k","path":)" + path + R"(,"caption":"of k"})");
  // A caption that is gone is none; the same with a json that is no object.
  write_tar(captions, {{"l", {{"json", "[1]"}, {"txt", "of l"}}}});
  CHECK(facts(0) == R"({"key":"k","path":)" + path + "}");
  CHECK(facts(1) == R"({"key":"l","path":)" + path + R"(,"caption":"of l","end":9})");
  // Windows are of videos.
  const Json windowed = {{"video_encoder", made_encoder()}, {"video_windows", {{"begin", {0, 1}}}}};
  shard::Sample sample = vector_sample("k", axis(1), windowed);
  Vector two = axis(2);
  two.resize(32);
  two[17] = 1;
  sample.members.push_back({"windows.npy", io::make_npy_half({2, 16}, two)});
  write_tar(embed, {sample});
  CHECK(match_facts(record, 0, VectorKind::video, axis(1), {})["window"] ==
        Json{{"number", 1}, {"begin", 1}, {"score", 1}});
  CHECK_FALSE(match_facts(record, 0, VectorKind::text, axis(1), {}).contains("window"));
}

TEST_CASE("facts of the clip's own json are taken where its key is the match's") {
  const TemporaryFolder folder;
  const std::string tar = folder / "a.tar";
  write_tar(tar, {{"k", {{"json", R"({"source":"k.mp4","end":4})"}}}, {"l", {{"json", "{"}}}});
  const auto with = [&](Json line, const std::string& key, std::int64_t row) {
    add_clip_facts(line, key, tar, row);
    return line;
  };
  CHECK(with(Json::object(), "k", 0) == Json{{"source", "k.mp4"}, {"end", 4}});
  CHECK(with({{"source", "mine"}}, "k", 0) == Json{{"source", "mine"}});
  CHECK(with(Json::object(), "other", 0).empty());
  CHECK(with(Json::object(), "l", 1).empty());  // its json is damaged
  Json line = Json::object();
  add_clip_facts(line, "k", folder / "none.tar", 0);
  CHECK(line.empty());
}
