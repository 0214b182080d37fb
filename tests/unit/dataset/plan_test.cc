// What vfm-shard keeps, where it puts it, and that neither the order of the input nor a sample more
// moves the rest.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/error.h"
#include "base/slots.h"
#include "dataset/duplicates.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// A video of its own source and contents.
Item item(const std::string& key) {
  Item item;
  item.key = item.source = key;
  item.media = "mp4";
  item.width = 640, item.height = 480, item.seconds = 3;
  item.media_bytes = 1000, item.tar_bytes = 1536, item.json_bytes = 100;
  item.content = "content of " + key, item.identity = "identity of " + key;
  return item;
}

std::vector<Item> items(int count) {
  std::vector<Item> all;
  for (int i = 0; i < count; ++i)
    all.push_back(item("k" + std::to_string(i)));
  return all;
}

ShardPlan plan_of(std::vector<Item> all, const ShardOptions& options,
                  const KnownSources& known = {}) {
  Slots slots(1);
  Scan scan;
  scan.items = std::move(all);
  return plan_shards(scan, options, known, slots);
}

/// The split of each key.
std::map<std::string, std::string> splits(const std::vector<Item>& all, const ShardPlan& plan) {
  std::map<std::string, std::string> split;
  for (const PlannedShard& shard : plan.shards)
    for (const std::uint32_t i : shard.items)
      split[all[i].key] = shard.split;
  return split;
}

std::string kept_of(const std::vector<Item>& all, const FoundDuplicates& found) {
  std::string kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!found.dropped[i]) kept += all[i].key + " ";
  return kept;
}

ShardOptions halves() {
  ShardOptions options;
  options.split = {{"train", 0.5}, {"val", 0.5}};
  return options;
}

}  // namespace

TEST_CASE("of equal clips the one with more pixels stays, then more bytes, then the first key") {
  Slots slots(1);
  const auto duel = [&](const auto& change) {
    std::vector<Item> all = {item("b"), item("a")};
    all[0].content = all[1].content;
    change(all[0], all[1]);
    const FoundDuplicates found = find_duplicates(all, ShardOptions(), slots);
    REQUIRE(found.list.size() == 1);
    CHECK(found.list[0].kind == "exact");
    CHECK(found.dropped[found.pairs[0].first]);
    return found.list[0].keeper + ": " + found.list[0].reason;
  };
  CHECK(duel([](Item&, Item&) {}) == "a: equal in size and bytes; the first by key");
  CHECK(duel([](Item& b, Item&) { b.media_bytes = 1001; }) ==
        "b: more bytes at the same size: 1001 against 1000");
  CHECK(duel([](Item& b, Item& a) { b.width = 480, b.height = 720, a.media_bytes = 9999; }) ==
        "b: more pixels: 480x720 against 640x480");
}

TEST_CASE("near duplicates are of one encoder and one kind of media") {
  Slots slots(1);
  std::vector<Item> all = items(6);
  const std::vector<float> right = {1, 0}, near = {0.9f, 0.43589f};  // cosine 0.9
  for (Item& one : all)
    one.embedding = right, one.encoder = 1;
  all[1].embedding = near;
  all[2].encoder = 2;
  all[3].media = "jpg";
  all[4].embedding.clear();
  all[5].content = all[2].content;  // gone already
  all[0].media_bytes = 2000;
  ShardOptions options;
  options.duplicate_threshold = 0.89;
  std::vector<Item> again = all;
  const FoundDuplicates found = find_duplicates(again, options, slots);
  CHECK(kept_of(all, found) == "k0 k2 k3 k4 ");
  REQUIRE(found.list.size() == 2);
  CHECK(found.list[0].kind == "exact");
  CHECK(found.list[1].kind == "near");
  CHECK(found.list[1].keeper == "k0");
  CHECK(found.list[1].cosine == Approx(0.9).epsilon(1e-3));
  options.duplicate_threshold = 0.91;
  again = all;
  CHECK(find_duplicates(again, options, slots).list.size() == 1);
}

TEST_CASE("what shows the same stands in one split, kept or not") {
  // Twenty pairs of sources; without their equal clips they would be shared out one by one.
  std::vector<Item> all = items(80);
  for (std::size_t i = 0; i < 80; i += 2)
    all[i].source = all[i + 1].source = "source " + std::to_string(i);
  for (std::size_t i = 0; i < 80; i += 4)
    all[i].content = all[i + 2].content;
  ShardOptions options = halves();
  for (const bool keep : {false, true}) {
    options.keep_duplicates = keep;
    const ShardPlan plan = plan_of(all, options);
    CHECK(plan.duplicates.size() == (keep ? 0u : 20u));
    const auto split = splits(all, plan);
    CHECK(split.size() == (keep ? 80u : 60u));
    int together = 0;
    for (std::size_t i = 0; i < 80; i += 4)
      together += split.at("k" + std::to_string(i + 1)) == split.at("k" + std::to_string(i + 3));
    CHECK(together == 20);
    CHECK(std::ranges::count_if(split, [](const auto& one) { return one.second == "val"; }) ==
          (keep ? 40 : 30));
  }
}

TEST_CASE("neither the order of the input nor a sample more moves the others") {
  std::vector<Item> all = items(40);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].source = "source " + std::to_string(i / 2);
  ShardOptions options = halves();
  options.shard_bytes = 20000;
  const ShardPlan plan = plan_of(all, options);
  std::vector<Item> other = all;
  std::ranges::reverse(other);
  const ShardPlan reversed = plan_of(other, options);
  CHECK(reversed.hash == plan.hash);
  CHECK(reversed.sources.lines() == plan.sources.lines());
  REQUIRE(reversed.shards.size() == plan.shards.size());
  CHECK(plan.shards.size() > 2);

  other.push_back(item("new"));
  const auto before = splits(all, plan);
  const ShardPlan more = plan_of(other, options, plan.sources);
  CHECK(more.hash != plan.hash);
  for (const auto& [key, split] : splits(other, more))
    if (key != "new") CHECK(split == before.at(key));
  // Of those that are kept the order stays.
  const auto order = [&](const std::vector<Item>& from, const ShardPlan& of) {
    std::string keys;
    for (const PlannedShard& shard : of.shards)
      for (const std::uint32_t i : shard.items)
        if (from[i].key != "new") keys += from[i].key + " ";
    return keys;
  };
  CHECK(order(other, more) == order(all, plan));
  options.seed = 1;
  CHECK(order(all, plan_of(all, options)) != order(all, plan));
}

TEST_CASE(
    "a new source goes where an earlier one stands that shows the same; torn ones to the last") {
  KnownSources known;
  std::vector<Item> all = items(4);
  known.put(all[0], "val");
  known.put(all[1], "train");
  all[2].content = all[0].content;
  all[3].content = all[1].content;
  ShardOptions options = halves();
  options.keep_duplicates = true;
  const auto split = splits(all, plan_of(all, options, known));
  CHECK(split.at("k0") == "val");
  CHECK(split.at("k2") == "val");
  CHECK(split.at("k1") == "train");
  CHECK(split.at("k3") == "train");
  for (Item& one : all)
    one.content = all[0].content;
  const auto torn = splits(all, plan_of(all, options, known));
  CHECK(torn.at("k1") == "train");
  CHECK(torn.at("k2") == "val");
  CHECK(torn.at("k3") == "val");
  // A source that is missing today keeps its split.
  KnownSources gone = known;
  gone.put(item("gone"), "val");
  CHECK(plan_of(all, options, gone).sources.split_of(item("gone")) == "val");
}

TEST_CASE("shards are cut to the byte, and hold samples of the same members") {
  std::vector<Item> all = items(4);
  // Two blocks at the end of a tar; of a sample the JSON's header and block beside the rest.
  ShardOptions options;
  options.shard_bytes = 1024 + 2 * (1536 + 512 + 512);
  CHECK(plan_of(all, options).shards.size() == 2);
  --options.shard_bytes;
  const ShardPlan single = plan_of(all, options);
  CHECK(single.shards.size() == 4);
  std::set<std::string> paths;
  for (const PlannedShard& shard : single.shards)
    paths.insert(shard.path.substr(shard.path.size() - 11));
  CHECK(paths == std::set<std::string>{"-000000.tar", "-000001.tar", "-000002.tar", "-000003.tar"});
  // To the last byte of the JSON, with the place that it gets.
  const std::string place = ",\"split\":\"train\",\"bin\":\"" + single.shards[0].bin + "\"";
  ++options.shard_bytes;
  for (const auto& [json, shards] : {std::pair(512 - place.size(), 2u), {513 - place.size(), 4u}}) {
    for (Item& one : all)
      one.json_bytes = json;
    CHECK(plan_of(all, options).shards.size() == shards);
  }
  options.shard_bytes = 1;  // a sample stands somewhere, however large
  CHECK(plan_of(all, options).shards.size() == 4);

  options.shard_bytes = 1 << 20;
  all[0].extras = " txt text.npy", all[1].extras = " txt", all[2].extras = " txt text.npy";
  const ShardPlan plan = plan_of(all, options);
  std::map<std::string, std::size_t> bins;
  for (const PlannedShard& shard : plan.shards)
    bins[shard.bin.substr(std::min(shard.bin.size(), shard.bin.find("_without_")))] =
        shard.items.size();
  CHECK(bins == std::map<std::string, std::size_t>{
                    {"", 2}, {"_without_text-npy", 1}, {"_without_text-npy_txt", 1}});
  // Names that a folder could confuse are told apart by a hash.
  all[3].extras = " a_b";
  for (const PlannedShard& shard : plan_of(all, options).shards)
    CHECK(shard.bin.find(shard.items[0] == 3 ? "_without_text-npy_txt" : "_without_members") !=
          std::string::npos);
  all.resize(1);
  all[0].media = "left.jpg";
  CHECK(plan_of(all, options).shards[0].bin.ends_with("_left-jpg"));
  CHECK(options_json(options)["shard_bytes"] == 1 << 20);
  CHECK(options_json(options)["duplicate_threshold"] == 0.99);
  Json meta;
  add_place(meta, plan.shards[0]);
  CHECK(dump_json(meta) == "{\"split\":\"train\",\"bin\":\"" + plan.shards[0].bin + "\"}");
}

TEST_CASE(
    "sources are known by name, by path when they were repaired, by contents if only by key") {
  Item named = item("k");
  named.source = "0a1b", named.path = "raw/a.mp4";
  KnownSources known;
  known.put(named, "val");
  known.put(item("000042"), "train");
  CHECK(known.lines() == R"({"source":"000042","content":"content of 000042","split":"train"})"
                         "\n"
                         R"({"source":"0a1b","path":"raw/a.mp4","split":"val"})"
                         "\n");
  const TemporaryFolder folder;
  folder.write("sources.jsonl", known.lines());
  known = KnownSources::read(folder.path + "/sources.jsonl");
  CHECK(known.split_of(named) == "val");
  CHECK(known.knows(named));
  Item repaired = named;
  repaired.source = "ffff";
  CHECK(known.split_of(repaired) == "val");
  CHECK(known.knows(repaired));
  repaired.path.clear();
  CHECK_FALSE(known.split_of(repaired));
  CHECK_FALSE(known.knows(repaired));
  Item foreign = item("000042");
  CHECK(known.knows(foreign));
  foreign.content = "other";
  CHECK_FALSE(known.knows(foreign));
  // A path that two splits had says nothing.
  Item twice = named;
  twice.source = "2222";
  known.put(twice, "train");
  repaired.path = named.path;
  CHECK_FALSE(known.split_of(repaired));
  CHECK(known.split_of(named) == "val");
  for (const char* wrong : {"[]\n", "{}\n", "{\"source\":\"a\"}\n", "x\n"}) {
    folder.write("sources.jsonl", wrong);
    CHECK_THROWS_AS(KnownSources::read(folder.path + "/sources.jsonl"), Error);
  }
}
