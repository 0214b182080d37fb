// How samples are ranked: by hand, from vectors that are chosen.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/search.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "columns/column_job.h"
#include "columns/embed/clip_vector.h"
#include "columns/embed/glimpse.h"
#include "curate/vectors/look.h"
#include "models/text_encoder.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"
#include "unit/columns/vector_shards.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

FoundMatches search_in(const std::vector<std::string>& inputs, const std::string& query,
                       std::size_t top = 10, const std::optional<std::string>& prompt = {},
                       int threads = 1) {
  Run run(threads);
  const HeardLog lines;
  SearchOptions options;
  options.inputs = inputs;
  options.query = query;
  options.query_prompt = prompt;
  options.top = top;
  FoundMatches found;
  found.errors = search(options, run.slots, run, run.manifest);
  found.matches = run.records();
  found.warnings = lines.text();
  CHECK(run.unit == "shards");
  return found;
}

/// The matches of `query`, best first.
std::vector<Json> matches(const TemporaryFolder& folder, const std::string& query,
                          std::size_t top) {
  const FoundMatches found = search_in({folder.path + "/a.tar"}, query, top);
  CHECK(found.errors == 0);
  return found.matches;
}

/// Of a caption's words.
shard::Sample worded(const std::string& key, const std::string& words, int dim = 64) {
  const auto encoder = models::make_text_encoder({.name = "builtin:hash", .dim = dim});
  const text::TokenEmbeddings tokens = encoder->encode(words);
  return {key,
          {{"json", dump_json({{"text_encoder", encoder->config().to_json()}})},
           {"txt", words},
           {"text.npy", io::make_npy_half({tokens.tokens, dim}, tokens.values)}}};
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

TEST_CASE("words are searched in all shards, those of another encoder apart") {
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar", b = folder / "b.tar", c = folder / "c.tar";
  write_tar(a, {worded("one", "a red fox"), worded("two", "a blue owl")});
  write_tar(b, {worded("three", "the red foxes"), worded("other", "a red fox", 32)});
  write_tar(c, {worded("far", "red fox", 32), worded("away", "fox", 32)});
  const FoundMatches found = search_in({a, b, c}, "red fox", 10, {}, 2);
  CHECK(found.keys() == std::vector<std::string>{"one", "three", "two"});
  CHECK(found.errors == 3);
  const auto config = [](int dim) {
    return dump_json(
        models::make_text_encoder({.name = "builtin:hash", .dim = dim})->config().to_json());
  };
  const std::string apart = " samples were embedded by " + config(32) + ", the first ones by " +
                            config(64) + ": search them apart\n";
  CHECK(found.warnings == b + ": 1" + apart + c + ": 2" + apart);
  CHECK(found.matches[0]["path"] == a);
  CHECK(found.matches[0]["caption"] == "a red fox");
  CHECK(found.matches[0]["score"].get<double>() > found.matches[1]["score"].get<double>());
  CHECK(found.matches[1]["score"].get<double>() > 0.5);
  CHECK(search_in({c, a}, "red fox").keys() == std::vector<std::string>{"far", "away"});
  // A word of zeros is like no other.
  shard::Sample zeros = worded("zeros", "x");
  zeros.members[2].data = io::make_npy_half({1, 64}, Vector(64));
  write_tar(c, {zeros, worded("fox", "fox")});
  CHECK(search_in({c}, "fox").matches[0]["score"] == 1);
  CHECK(search_in({c}, "fox").matches[1]["score"] == 0);
  // As in a shard alone, with its weights.
  CHECK(search_in({a}, "owl").keys() == std::vector<std::string>{"two", "one"});
}

TEST_CASE("a file finds its copies first, by looks where clips name no encoder") {
  const TemporaryFolder folder;
  std::vector<shard::Sample> samples;
  for (const auto& [key, colour] : {std::pair("green", kGreen), {"red", kRed}, {"blue", kBlue}}) {
    const std::string video = make_video(8, colour);
    folder.write(std::string(key) + ".mp4", video);
    const Vector look = curate::look(see_member({"mp4", video}, "it", Json(), nullptr).glimpse);
    samples.push_back(vector_sample(key, look, {{"source", std::string(key) + ".mp4"}}));
  }
  samples.push_back(vector_sample("none", Vector(curate::kLookDim), Json::object()));
  write_tar(folder / "a.tar", samples);
  const FoundMatches found = search_in({folder / "a.tar"}, folder / "red.mp4");
  REQUIRE(found.matches.size() == 4);
  CHECK(found.matches[0] == Json{{"kind", "match"},
                                 {"rank", 1},
                                 {"score", 1},
                                 {"key", "red"},
                                 {"path", folder / "a.tar"},
                                 {"source", "red.mp4"}});
  CHECK(found.matches[3]["key"] == "none");
  CHECK(found.matches[3]["score"] == 0);
  CHECK(found.errors == 0);
  CHECK(search_in({folder / "a.tar"}, folder / "red.mp4", 1).matches.size() == 1);
  // A shard without vectors of clips, and one with a vector that is no look.
  write_tar(folder / "b.tar", {worded("k", "a fox")});
  write_tar(folder / "c.tar", {vector_sample("k", axis(1), Json::object())});
  const FoundMatches bad =
      search_in({folder / "b.tar", folder / "c.tar", folder / "a.tar"}, folder / "red.mp4");
  CHECK(bad.errors == 2);
  CHECK(bad.matches.size() == 4);
  CHECK(bad.warnings ==
        folder / "b.tar: has no video embeddings; run vfm-embed on it first\n" +
            (folder / "c.tar: k.video.npy has 16 numbers, its encoder makes 234\n"));
}

TEST_CASE("a text finds clips without captions by a model of texts and pictures") {
  const TemporaryFolder folder;
  const std::string model = make_clip_model(folder / "clip");
  const auto pictures = models::make_picture_encoder(model, Device::cpu, DType::f32);
  const Json config = clip_vector_config(*pictures, 8);
  const auto texts = models::make_text_encoder(models::text_encoder_config(model, 512, DType::f32));
  const auto unit = [&](const std::string& text) {
    Vector vector = texts->encode(text).values;
    models::normalise(vector);
    return vector;
  };
  Json windowed = {{"video_encoder", config}, {"video_windows", {{"begin", {0, 2}}}}};
  std::vector<shard::Sample> samples{vector_sample("near", unit("of a red fox"), windowed),
                                     vector_sample("far", unit("blue"), windowed)};
  for (shard::Sample& sample : samples) {
    Vector both = unit("nothing at all");
    const Vector red = unit("of a red fox");
    both.insert(both.end(), red.begin(), red.end());
    sample.members.push_back({"windows.npy", io::make_npy_half({2, 12}, both)});
  }
  write_tar(folder / "a.tar", samples);
  const FoundMatches found = search_in({folder / "a.tar"}, "of a red fox");
  CHECK(found.keys() == std::vector<std::string>{"near", "far"});
  CHECK(found.matches[0]["score"].get<double>() == Approx(1).margin(1e-3));
  CHECK(found.matches[0]["window"]["number"] == 1);
  CHECK(found.matches[0]["window"]["begin"] == 2);
  const FoundMatches prompted = search_in({folder / "a.tar"}, "a red fox", 10, "of ");
  CHECK(prompted.matches == found.matches);
  // Clips by an encoder without texts have nothing that could be compared.
  write_tar(folder / "b.tar", {vector_sample("k", axis(1)), vector_sample("l", axis(2))});
  const FoundMatches none = search_in({folder / "b.tar"}, "a fox");
  CHECK(none.errors == 1);
  CHECK(none.warnings == folder /
                             "b.tar: has no text embeddings; run vfm-caption, then vfm-embed "
                             "on it first\n");
}

TEST_CASE("queries without words and inputs without shards are refused") {
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar";
  write_tar(a, {worded("k", "a fox")});
  folder.write("v.mp4", make_video(2, kRed));
  CHECK(usage_error([&] { search_in({a}, " .,"); }) == "the text to search for has no words");
  CHECK(usage_error([&] { search_in({a}, "none.mp4"); }) ==
        "cannot open 'none.mp4': there is no such video or picture");
  CHECK(usage_error([&] { search_in({a}, folder / "v.mp4", 1, "of "); }) ==
        "'" + folder.path + "/v.mp4' is a file, and --query-prompt goes before a text");
  CHECK(search_in({a}, "a fox in none.mp4").matches.size() == 1);
  folder.write("in.jsonl", "");
  CHECK_THROWS_WITH(search_in({folder / "in.jsonl"}, "a fox"),
                    "the input has no shard to search; name shards that vfm-embed has embedded");
  folder.write("in.jsonl",
               "{\"kind\":\"video\",\"path\":\"v.mp4\"}\n{\"kind\"\n{\"kind\":\"shard\"}\n" +
                   dump_json({{"kind", "shard"}, {"path", folder / "gone.tar"}}) + "\n");
  const FoundMatches bad = search_in({folder / "in.jsonl"}, "a fox");
  CHECK(bad.errors == 4);
  CHECK(bad.matches.empty());
  CHECK_THAT(bad.warnings, Catch::Contains("v.mp4: line 1 of") &&
                               Catch::Contains("is a 'video', not a shard; a text of several words "
                                               "to search for stands in quotes\n") &&
                               Catch::Contains(folder / "gone.tar: "));
  write_tar(a, {{"k", {{"json", "{}"}, {"text.npy", io::make_npy_half({1, 2}, Vector{1, 2})}}}});
  CHECK(search_in({a}, "a fox").warnings == a + ": k.json of '" + a + "' has no 'text_encoder'\n");
}
