// How samples are ranked: by hand, from vectors that are chosen.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/search.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/json.h"
#include "columns/column_job.h"
#include "io/file.h"
#include "io/npy.h"
#include "models/text_encoder.h"
#include "shard/writer.h"
#include "share/slots.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// The matches of `query`, best first.
std::vector<Json> matches(const TemporaryFolder& folder, const std::string& query,
                          std::size_t top) {
  const std::string path = folder.path + "/matches.jsonl";
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  io::ManifestWriter manifest(fd);
  share::Slots slots(1);
  Progress progress;
  SearchOptions options;
  options.inputs = {folder.path + "/a.tar"};
  options.query = query;
  options.top = top;
  CHECK(search(options, slots, progress, manifest) == 0);
  ::close(fd);
  std::vector<Json> found;
  const std::string text = io::read_file(path);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    found.push_back(Json::parse(text.substr(at, text.find('\n', at) - at)));
  return found;
}

}  // namespace

TEST_CASE("the rarer a word of the query the heavier, equal ones by key") {
  const TemporaryFolder folder;
  const text::EncoderConfig config{.name = "builtin:hash", .dim = 64};
  const text::TokenEmbeddings query = models::make_text_encoder(config)->encode("fox road");
  REQUIRE(query.tokens == 2);
  const std::vector<float> fox(query.values.begin(), query.values.begin() + 64);
  const std::vector<float> road(query.values.begin() + 64, query.values.end());
  double dot = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < 64; ++i)
    dot += fox[i] * road[i], a += fox[i] * fox[i], b += road[i] * road[i];
  const double apart = dot / std::sqrt(a * b);
  REQUIRE(apart < 0.6);  // else one word counts as the other

  shard::Writer writer(folder.path + "/a.tar");
  const auto add = [&](const std::string& key, const std::vector<std::vector<float>>& words) {
    std::vector<float> tokens;
    for (const std::vector<float>& word : words)
      tokens.insert(tokens.end(), word.begin(), word.end());
    const Json json = {
        {"text_encoder", config.to_json()}, {"caption", "of " + key}, {"begin", 1.5}};
    writer.add(shard::Sample{
        key,
        {{"json", dump_json(json)},
         {"text.npy", io::make_npy_half({static_cast<std::int64_t>(words.size()), 64}, tokens)}}});
  };
  add("c", {fox});
  add("b", {fox});
  add("a", {road});
  add("both", {road, fox});
  add("none", {});
  writer.finish();

  const double foxes = std::log(1 + 5 / 3.5), roads = std::log(1 + 5 / 2.5);
  const std::vector<Json> found = matches(folder, "fox road", 4);
  REQUIRE(found.size() == 4);
  const std::vector<std::pair<std::string, double>> expected = {
      {"both", 1},
      {"a", (roads + foxes * apart) / (roads + foxes)},
      {"b", (foxes + roads * apart) / (roads + foxes)},
      {"c", (foxes + roads * apart) / (roads + foxes)}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(found[i]["rank"] == i + 1);
    CHECK(found[i]["key"] == expected[i].first);
    CHECK(found[i]["score"].get<double>() == Approx(expected[i].second).margin(1e-3));
    CHECK(found[i]["caption"] == "of " + expected[i].first);
    CHECK(found[i]["begin"] == 1.5);
    CHECK_FALSE(found[i].contains("source"));
  }
  // No words at all: as far from every word as can be.
  CHECK(matches(folder, "fox road", 9).back()["score"] == -1);
}

TEST_CASE("a column is made from all tars of its shard but its own, each once") {
  io::Record record;
  record.json = Json{{"path", "a.tar"},
                 {"columns", {{"clip", "a.tar"}, {"caption", "c.tar"}, {"more", "a.tar"}}}};
  CHECK(tars_without(record, {"caption"}) == std::vector<std::string>{"a.tar"});
  CHECK(tars_without(record, {"embed"}) == std::vector<std::string>{"a.tar", "c.tar"});
  record.json["columns"] = {{"clip", "a.tar"}};
  CHECK(tars_without(record, {"clip"}) == std::vector<std::string>{"a.tar"});
}
