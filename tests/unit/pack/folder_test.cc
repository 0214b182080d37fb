// SPDX-License-Identifier: Apache-2.0
#include "pack/folder.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/places.h"
#include "pack/pack.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::pack;

namespace {

data::Entry entry_of(const std::string& key, const std::string& shard, int frames, int height,
                     int width) {
  data::Entry entry;
  entry.key = key;
  entry.shard = shard;
  entry.frames = frames, entry.height = height, entry.width = width;
  return entry;
}

}  // namespace

TEST_CASE("channel statistics, and channels that do not vary") {
  ChannelSums sums, more;
  sums.count = 2, sums.sum = {4, 6}, sums.squares = {10, 18};  // 1, 3 and 3, 3
  more.count = 1, more.sum = {2, 3}, more.squares = {4, 9};
  sums.add(more);
  const Json statistics = channel_statistics(sums);
  CHECK(statistics["mean"] == Json{2.0, 3.0});
  CHECK(statistics["std"][0].get<double>() == Approx(std::sqrt(2.0 / 3)));
  CHECK(statistics["std"][1] == 1.0);
  const ChannelSums again = ChannelSums::from_json(Json::parse(dump_json(sums.to_json())), 2);
  CHECK(again.sum == sums.sum);
  CHECK(again.squares == sums.squares);
  CHECK_THROWS_AS(ChannelSums::from_json(sums.to_json(), 3), Error);
}

TEST_CASE("what is kept of a finished shard weighs what its keys and errors do") {
  ShardNotes notes;
  const std::size_t empty = held_bytes(FinishedPart(notes));
  const std::string key(1000, 'k');
  notes.entries.assign(100, entry_of(key, "a.tar", 3, 4, 6));
  notes.record = Json{{"xxh3", std::string(32, '0')}, {"samples", 100}, {"bytes", 1}};
  notes.errors.assign(10, {key, key});
  const FinishedPart part(notes);
  CHECK(part.key_ends.back() == 100'000);
  const std::size_t bytes = held_bytes(part) - empty;
  CHECK(bytes >= 120'000);
  CHECK(bytes < 130'000);
}

TEST_CASE("a shard of an earlier run is taken whole, as it was made, or not at all") {
  const TemporaryFolder place;
  const Json settings = {{"size", 64}}, made_from = {{"settings", settings}, {"sources", {1, 2}}};
  std::optional<PackFolder> folder(std::in_place, place.path, settings, 1, false);
  const auto write = [&](const std::string& split) {
    const std::string tar = folder->tar_path(split, "a.tar");
    folder->begin_shard(tar, "in/a.tar");  // of the working directory
    shard::Writer writer(tar);
    writer.add(shard::Sample{"k", {{"latent.npy", "x"}}});
    ShardNotes notes;
    notes.input = io::name_from(place.path, "in/a.tar");
    notes.made_from = made_from;
    notes.splits = {"train", "val"};
    notes.record = writer.finish();
    notes.entries = {entry_of("k", "a.tar", 3, 4, 6)};
    notes.sums.count = 1, notes.sums.sum = {2}, notes.sums.squares = {4};
    notes.without_text = 1;
    notes.errors = {{"k2 of 'in/a.tar'", "broken"}};
    folder->write_notes(tar, notes);
  };
  const auto found = [&](const Json& from, std::uint64_t member = 1 << 20) {
    return folder->find_finished("a.tar", "train", from, {.member = member});
  };
  write("train");
  CHECK(found(made_from).empty());  // the part of val is missing
  write("val");
  const auto parts = found(made_from);
  REQUIRE(parts.size() == 2);
  const ShardNotes& notes = parts.at("val");
  CHECK(notes.input == io::name_from(place.path, "in/a.tar"));
  CHECK(notes.sums.sum == std::vector<double>{2});
  CHECK(notes.without_text == 1);
  REQUIRE(notes.errors.size() == 1);
  CHECK(notes.errors[0].message == "broken");
  CHECK(notes.record["samples"] == 1);
  REQUIRE(notes.entries.size() == 1);
  CHECK(notes.entries[0].key == "k");
  CHECK(facts_of(notes).samples == 1);
  CHECK(facts_of(notes).tokens == 18);
  CHECK(found({{"settings", settings}, {"sources", {1, 3}}}).empty());
  CHECK(folder->find_finished("b.tar", "train", made_from, {}).empty());
  folder->add("val", "a.tar", facts_of(notes));
  CHECK(folder->has("val", "a.tar"));
  CHECK_FALSE(folder->has("train", "a.tar"));
  CHECK(folder->without_text() == 1);

  // The same options go on, others are told apart by name; another input is not overwritten.
  folder.reset();
  folder.emplace(place.path, settings, 1, false);
  CHECK(found(made_from).size() == 2);
  CHECK_NOTHROW(folder->begin_shard(folder->tar_path("test", "a.tar"), "in/a.tar"));
  CHECK_THROWS_WITH(folder->begin_shard(folder->tar_path("val", "a.tar"), "other/a.tar"),
                    Catch::Contains("/in/a.tar', and now would be of 'other/a.tar'"));
  CHECK_NOTHROW(folder->begin_shard(folder->tar_path("val", "a.tar"),
                                    io::named_from(io::working_folder(), "in/a.tar")));
  write("val");
  CHECK_NOTHROW(folder->begin_shard(folder->tar_path("val", "a.tar"), "in/./a.tar"));
  CHECK(found(made_from).empty());
  folder.reset();
  CHECK_THROWS_WITH(PackFolder(place.path, {{"size", 32}}, 1, false),
                    Catch::Contains("size is 64 there, and now 32"));
  folder.emplace(place.path, Json{{"size", 32}}, 1, true);
  CHECK_FALSE(std::filesystem::exists(folder->tar_path("train", "a.tar")));
}

TEST_CASE("statistics are of what is trained on; what is stale of the same set goes") {
  const TemporaryFolder place;
  const auto tokenizer = models::make_tokenizer({.name = "builtin:wavelet"});
  PackFolder folder(place.path, {{"size", 64}}, 1, false);
  const auto write = [&](const std::string& split, const std::string& name, double mean) {
    const std::string tar = folder.tar_path(split, name);
    folder.begin_shard(tar, "in/" + name);
    shard::Writer writer(tar);
    writer.add(shard::Sample{split + "-" + io::stem(name),
                             {{"latent.npy", "x"}, {"text.npy", "t"}, {"json", "{}"}}});
    ShardNotes notes;
    notes.record = writer.finish();
    notes.entries = {entry_of(split + " " + name, name, 2, 4, 4)};
    notes.sums.count = 1, notes.sums.sum = {mean}, notes.sums.squares = {mean * mean};
    folder.write_notes(tar, notes);
    return facts_of(notes);
  };
  const auto latents = [&] {
    folder.finish(latent_tokenizer(*tokenizer));
    return parse_json(io::read_file(place.path + "/latents.json"), "latents.json");
  };
  CHECK_THROWS_WITH(folder.finish(latent_tokenizer(*tokenizer)), Catch::Contains("no sample"));
  folder.add("val", "a.tar", write("val", "a.tar", 5));
  CHECK(latents()["mean"] == Json{5.0});  // there is nothing else
  folder.add("train", "a.tar", write("train", "a.tar", 1));
  folder.add("train", "b.tar", write("train", "b.tar", 3));
  write("train", "stale.tar", 9);
  const Json json = latents();
  CHECK(json["mean"] == Json{2.0});
  CHECK(json["splits"]["train"]["samples"] == 2);
  CHECK(json["splits"]["train"]["shards"] == 2);
  CHECK(json["splits"]["val"]["samples"] == 1);
  const std::string index = io::read_file(place.path + "/train/index.jsonl");
  CHECK(std::count(index.begin(), index.end(), '\n') == 2);
  CHECK(index.find("train a.tar") < index.find("train b.tar"));
  CHECK(io::file_exists(folder.tar_path("train", "stale.tar")));  // it may be another set's
  folder.goes_on();
  latents();
  CHECK_FALSE(io::file_exists(folder.tar_path("train", "stale.tar")));
  CHECK(io::file_exists(folder.tar_path("train", "a.tar")));
}

TEST_CASE("notes that change while a run goes on are not taken for its own") {
  const TemporaryFolder place;
  const auto tokenizer = models::make_tokenizer({.name = "builtin:wavelet"});
  PackFolder folder(place.path, {{"size", 64}}, 1, false);
  const std::string tar = folder.tar_path("train", "a.tar");
  folder.begin_shard(tar, "in/a.tar");
  shard::Writer writer(tar);
  writer.add(shard::Sample{"k", {{"latent.npy", "x"}}});
  ShardNotes notes;
  notes.record = writer.finish();
  notes.entries = {entry_of("k", "a.tar", 1, 4, 4)};
  folder.write_notes(tar, notes);
  folder.add("train", "a.tar", facts_of(notes));
  notes.entries[0].width = 8;
  folder.write_notes(tar, notes);
  CHECK_THROWS_WITH(folder.finish(latent_tokenizer(*tokenizer)),
                    Catch::Contains("was changed while this program ran"));
  CHECK_FALSE(io::file_exists(place.path + "/train/index.jsonl"));
  notes.entries.clear();
  CHECK_THROWS_WITH(facts_of(notes), Catch::Contains("does not fit its entries"));
}
