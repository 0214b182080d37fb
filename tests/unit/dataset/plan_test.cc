// What vfm-shard keeps, where it puts it, and that neither the order of the input nor a sample more
// moves the rest.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "dataset/bins.h"
#include "dataset/duplicates.h"
#include "io/file.h"
#include "share/slots.h"
#include "support/parts.h"
#include "support/planned_samples.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

using Items = std::vector<Item>;

/// A video of its own source and contents.
Item item(const std::string& key) {
  Item item;
  item.key = item.source = key;
  item.shape.media = "mp4";
  item.width = 640, item.height = 480, item.seconds = 3;
  item.media_bytes = 1000, item.tar_bytes = 1536, item.json_bytes = 100;
  item.content = "content of " + key, item.identity = "identity of " + key;
  return item;
}

Items items(int count) {
  Items all;
  for (int i = 0; i < count; ++i)
    all.push_back(item("k" + std::to_string(i)));
  return all;
}

/// The split of each key.
std::map<std::string, std::string> splits(PlannedSamples& planned) {
  std::map<std::string, std::string> split;
  planned.for_each(
      [&](const PlannedShard& shard, const Item& item) { split[item.key] = shard.split; });
  return split;
}

std::string keys_in_order(PlannedSamples& planned, const std::string& but = {}) {
  std::string keys;
  planned.for_each([&](const PlannedShard&, const Item& item) {
    if (item.key != but) keys += item.key + " ";
  });
  return keys;
}

std::vector<Duplicate> duplicates(PlannedSamples& planned) {
  std::vector<Duplicate> list;
  planned.plan.duplicates.for_each([&](const Duplicate& one) {
    list.push_back(one);
    return true;
  });
  return list;
}

ShardOptions halves() {
  ShardOptions options;
  options.split = {{"train", 0.5}, {"val", 0.5}};
  return options;
}

KnownSource known(const Item& item, const std::string& split) {
  return {item.source, item.path, item.named_by_key() ? item.content : "", split};
}

}  // namespace

TEST_CASE("of equal clips the one with more pixels stays, then more bytes, then the first key") {
  const auto duel = [&](const auto& change) {
    Items all = {item("b"), item("a")};
    all[0].content = all[1].content;
    change(all[0], all[1]);
    PlannedSamples planned(all);
    const std::vector<Duplicate> list = duplicates(planned);
    REQUIRE(list.size() == 1);
    CHECK(list[0].kind == DuplicateKind::exact);
    CHECK(keys_in_order(planned) == list[0].keeper + " ");
    CHECK(list[0].key + list[0].keeper != list[0].keeper + list[0].keeper);
    return list[0].keeper + ": " + list[0].reason;
  };
  CHECK(duel([](Item&, Item&) {}) == "a: equal in size and bytes; the first by key");
  CHECK(duel([](Item& b, Item&) { b.media_bytes = 1001; }) ==
        "b: more bytes at the same size: 1001 against 1000");
  CHECK(duel([](Item& b, Item& a) { b.width = 480, b.height = 720, a.media_bytes = 9999; }) ==
        "b: more pixels: 480x720 against 640x480");
}

TEST_CASE("near duplicates are of one encoder and one kind of media") {
  Items all = items(6);
  const std::vector<float> right = {1, 0}, near = {0.9f, 0.43589f};  // cosine 0.9
  for (Item& one : all)
    one.embedding = right, one.encoder = 1;
  all[1].embedding = near;
  all[2].encoder = 2;
  all[3].shape.media = "jpg";
  all[4].embedding.clear();
  all[5].content = all[2].content;  // gone already
  all[0].media_bytes = 2000;
  ShardOptions options;
  options.duplicate_threshold = 0.89;
  PlannedSamples planned(all, options);
  CHECK(splits(planned).size() == 4);
  const std::vector<Duplicate> list = duplicates(planned);
  REQUIRE(list.size() == 2);
  CHECK(list[0].key == "k1");
  CHECK(list[0].kind == DuplicateKind::near);
  CHECK(list[0].keeper == "k0");
  CHECK(list[0].cosine == Approx(0.9).epsilon(1e-3));
  CHECK(list[1].key == "k5");
  CHECK(list[1].kind == DuplicateKind::exact);
  options.duplicate_threshold = 0.91;
  CHECK(PlannedSamples(all, options).plan.duplicates.count() == 1);
}

TEST_CASE("more embeddings than memory is given for are refused, and what can be done is said") {
  Items all = items(3);
  for (Item& one : all)
    one.embedding = {1, 0};
  ShardOptions options;
  options.near_bytes = 3 * near_bytes(2);
  options.duplicate_method = DuplicateMethod::exact;
  CHECK(PlannedSamples(all, options).plan.duplicates.count(DuplicateKind::near) == 2);
  --options.near_bytes;
  CHECK(usage_error([&] { PlannedSamples planned(all, options); }) ==
        "more than 2 samples with an embedding of 2 numbers: comparing all of them would take more "
        "memory than this version gives it; --duplicate-method clusters takes less, and "
        "--keep-near-duplicates drops exact duplicates alone");
  // By itself it takes what fits.
  options.duplicate_method = DuplicateMethod::automatic;
  {
    PlannedSamples planned(all, options);
    CHECK(planned.plan.duplicates.count(DuplicateKind::near) == 2);
    REQUIRE(planned.plan.compared.size() == 1);
    CHECK(planned.plan.compared[0].samples == 3);
    CHECK(planned.plan.compared[0].clusters.has_value());
    CHECK(planned.plan.compared[0].method() == "clusters=3 margin=1 most=64 numbers=128");
  }
  options.near_bytes = 3 * near_bytes_in_clusters() - 1;
  CHECK(usage_error([&] { PlannedSamples planned(all, options); }) ==
        "more than 2 samples with an embedding of 2 numbers: comparing them, even by clusters, "
        "would take more memory than this version gives it; --keep-near-duplicates drops exact "
        "duplicates alone");
  all[1].embedding.clear();
  CHECK(PlannedSamples(all, options).plan.duplicates.count(DuplicateKind::near) == 1);
}

TEST_CASE(
    "near duplicates by clusters are those of all pairs, kind by kind and encoder by encoder") {
  Items all = items(60);
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Some are halves, as they come from the disk, and some no numbers that halves have.
    const float angle = static_cast<float>((i * 7) % 20) * 0.05f;
    all[i].embedding = {std::cos(angle), std::sin(angle), 0.5f};
    if (i % 3 == 0) all[i].embedding = {1, 0.25f * static_cast<float>(i % 4), 0.5f};
    all[i].encoder = i % 5 == 0;
    if (i % 4 == 0) all[i].shape.media = "jpg";
    all[i].width = static_cast<double>(100 + i * 13 % 7), all[i].height = 100;
  }
  ShardOptions options;
  options.duplicate_threshold = 0.995;
  options.duplicate_method = DuplicateMethod::exact;
  PlannedSamples exact(all, options);
  options.duplicate_method = DuplicateMethod::clusters;
  PlannedSamples clusters(all, options);
  const auto want = duplicates(exact), got = duplicates(clusters);
  REQUIRE(want.size() > 20);
  REQUIRE(got.size() == want.size());
  REQUIRE(exact.plan.compared.size() == 4);
  REQUIRE(clusters.plan.compared.size() == 4);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(got[i].key == want[i].key);
    CHECK(got[i].keeper == want[i].keeper);
    CHECK(got[i].cosine == want[i].cosine);
    CHECK(got[i].reason == want[i].reason);
    CHECK(got[i].set == want[i].set);
    CHECK(exact.plan.compared.at(want[i].set).method() == "exact");
    CHECK(clusters.plan.compared.at(got[i].set).clusters->counts.cells > 0);
  }
}

TEST_CASE("a key that comes again: the first stays, the same sample is repeated, else it is told") {
  Items all = items(3);
  all.push_back(all[1]);
  all.push_back(all[1]);
  all.back().identity = "other";
  all.back().source = "of the other";
  PlannedSamples planned(all);
  CHECK(splits(planned).size() == 3);
  CHECK(planned.conflicts == "k1 ");
  const std::vector<Duplicate> list = duplicates(planned);
  REQUIRE(list.size() == 1);
  CHECK(list[0].kind == DuplicateKind::repeated);
  CHECK(list[0].key == "k1");
  CHECK(list[0].keeper == "k1");
  // Nothing of it is in the dataset, nor its source.
  CHECK(planned.sources().find("of the other") == std::string::npos);
}

TEST_CASE("what shows the same stands in one split, kept or not") {
  // Twenty pairs of sources; without their equal clips they would be shared out one by one.
  Items all = items(80);
  for (std::size_t i = 0; i < 80; i += 2)
    all[i].source = all[i + 1].source = "source " + std::to_string(i);
  for (std::size_t i = 0; i < 80; i += 4)
    all[i].content = all[i + 2].content;
  ShardOptions options = halves();
  for (const bool keep : {false, true}) {
    options.keep_duplicates = keep;
    PlannedSamples planned(all, options);
    CHECK(planned.plan.duplicates.count() == (keep ? 0u : 20u));
    const auto split = splits(planned);
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
  Items all = items(40);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].source = "source " + std::to_string(i / 2);
  ShardOptions options = halves();
  options.shard_bytes = 20000;
  PlannedSamples planned(all, options);
  Items other = all;
  std::ranges::reverse(other);
  PlannedSamples reversed(other, options);
  CHECK(reversed.plan.hash == planned.plan.hash);
  CHECK(reversed.sources() == planned.sources());
  REQUIRE(reversed.plan.shards.size() == planned.plan.shards.size());
  CHECK(planned.plan.shards.size() > 2);

  other.push_back(item("new"));
  const auto before = splits(planned);
  std::vector<KnownSource> sources;
  for (const Item& one : all)
    sources.push_back(known(one, before.at(one.key)));
  PlannedSamples more(other, options, sources);
  CHECK(more.plan.any_known);
  CHECK(more.plan.hash != planned.plan.hash);
  for (const auto& [key, split] : splits(more))
    if (key != "new") CHECK(split == before.at(key));
  // Of those that are kept the order stays.
  CHECK(keys_in_order(more, "new") == keys_in_order(planned));
  options.seed = 1;
  PlannedSamples seeded(all, options);
  CHECK(keys_in_order(seeded) != keys_in_order(planned));
}

TEST_CASE(
    "a new source goes where an earlier one stands that shows the same; torn ones to the last") {
  Items all = items(4);
  const std::vector<KnownSource> there = {known(all[0], "val"), known(all[1], "train")};
  all[2].content = all[0].content;
  all[3].content = all[1].content;
  ShardOptions options = halves();
  options.keep_duplicates = true;
  PlannedSamples planned(all, options, there);
  CHECK(splits(planned) == std::map<std::string, std::string>{
                               {"k0", "val"}, {"k1", "train"}, {"k2", "val"}, {"k3", "train"}});
  for (Item& one : all)
    one.content = all[0].content;
  PlannedSamples torn(all, options, there);
  CHECK(splits(torn) == std::map<std::string, std::string>{
                            {"k0", "val"}, {"k1", "train"}, {"k2", "val"}, {"k3", "val"}});
  // A source that is missing today keeps its split.
  std::vector<KnownSource> gone = there;
  gone.push_back(known(item("gone"), "val"));
  PlannedSamples without(all, options, gone);
  CHECK(without.sources().find("{\"source\":\"gone\",\"content\":\"content of gone\","
                               "\"split\":\"val\"}\n") != std::string::npos);
  options.split = {{"train", 1}};
  PlannedSamples whole(all, options, gone);
  CHECK(whole.sources().find("gone") == std::string::npos);
}

TEST_CASE("shards are cut to the byte, and hold samples of the same members") {
  Items all = items(4);
  const auto shards_of = [&](const ShardOptions& options) {
    return PlannedSamples(all, options).plan.shards;
  };
  // Two blocks at the end of a tar; of a sample the JSON's header and block beside the rest.
  ShardOptions options;
  options.shard_bytes = 1024 + 2 * (1536 + 512 + 512);
  CHECK(shards_of(options).size() == 2);
  --options.shard_bytes;
  const std::vector<PlannedShard> single = shards_of(options);
  CHECK(single.size() == 4);
  std::set<std::string> paths;
  for (const PlannedShard& shard : single)
    paths.insert(shard.path.substr(shard.path.size() - 11));
  CHECK(paths == std::set<std::string>{"-000000.tar", "-000001.tar", "-000002.tar", "-000003.tar"});
  // To the last byte of the JSON, with the place that it gets.
  const std::string place = ",\"split\":\"train\",\"bin\":\"" + single[0].bin + "\"";
  ++options.shard_bytes;
  for (const auto& [json, shards] : {std::pair(512 - place.size(), 2u), {513 - place.size(), 4u}}) {
    for (Item& one : all)
      one.json_bytes = json;
    CHECK(shards_of(options).size() == shards);
  }
  options.shard_bytes = 1;  // a sample stands somewhere, however large
  CHECK(shards_of(options).size() == 4);

  options.shard_bytes = 1 << 20;
  all[0].shape.extras = " txt text.npy", all[1].shape.extras = " txt";
  all[2].shape.extras = " txt text.npy";
  const std::vector<PlannedShard> plan = shards_of(options);
  std::map<std::string, std::size_t> bins;
  for (const PlannedShard& shard : plan)
    bins[shard.bin.substr(std::min(shard.bin.size(), shard.bin.find("_without_")))] = shard.samples;
  CHECK(bins == std::map<std::string, std::size_t>{
                    {"", 2}, {"_without_text-npy", 1}, {"_without_text-npy_txt", 1}});
  // Names that a folder could confuse are told apart by a hash.
  all[3].shape.extras = " a_b";
  for (const PlannedShard& shard : shards_of(options))
    CHECK(shard.bin.find(shard.shape.extras == " a_b" ? "_without_text-npy_txt"
                                                      : "_without_members") != std::string::npos);
  all.resize(1);
  all[0].shape.media = "left.jpg";
  CHECK(shards_of(options)[0].bin.ends_with("_left-jpg"));
  CHECK(options_json(options)["shard_bytes"] == 1 << 20);
  CHECK(options_json(options)["duplicate_threshold"] == 0.99);
  Json meta;
  add_place(meta, plan[0]);
  CHECK(dump_json(meta) == "{\"split\":\"train\",\"bin\":\"" + plan[0].bin + "\"}");
}

TEST_CASE("samples come in the order and with the facts that were planned, also from plan.bin") {
  Items all = items(30);
  all[7].columns = {{3, 512, 1024}, {4, 1 << 30, 2048}};
  all[7].fps = 29.97, all[7].shape.image_mode = "RGB", all[7].shard = 0;
  all[7].identity = "0123456789abcdef0123456789abcdef";
  ShardOptions options;
  options.shard_bytes = 20000;
  PlannedSamples planned(all, options);
  planned.plan.inputs.push_back({"x.tar.gz", {"a/x.tar.gz", "/x.embed.tar"}, {true, false}, 12});
  const std::string path = plan_file(planned.folder.path);
  const auto read = [&]() -> std::string {
    try {
      return read_plan_file(path).digest;
    } catch (const Error& error) {
      return replaced(error.what(), planned.folder.path + "/", "");
    }
  };
  CHECK(read() == "there is no 'plan.bin'; vfm-shard plan makes it");
  write_plan_file(planned.plan, path);
  const Json json = plan_json(planned.plan);
  planned.folder.write("plan.json", dump_json(json));
  const WritePlan plan = read_plan_file(path);
  CHECK(plan_json(plan) == json);
  CHECK(dump_json(plan.counts) == dump_json(planned.plan.counts));
  REQUIRE(plan.inputs.size() == 1);
  CHECK(plan.inputs[0].tars == planned.plan.inputs[0].tars);
  CHECK(plan.inputs[0].packed == std::vector<bool>{true, false});
  CHECK(plan.inputs[0].line == 12);
  std::string keys;
  for (const PlannedShard& shard : plan.shards) {
    const std::string packed = planned_items(plan, shard);
    std::uint64_t samples = 0;
    for (std::string_view rest = packed; !rest.empty(); ++samples) {
      const Item one = take_planned(rest, plan.shapes);
      keys += one.key + " ";
      if (one.key != "k7") continue;
      REQUIRE(one.columns.size() == 2);
      CHECK(std::tie(one.columns[1].row, one.columns[1].offset, one.columns[1].size) ==
            std::tuple(4u, 1u << 30, 2048u));
      CHECK(one.fps == 29.97);
      CHECK(one.shape.image_mode == "RGB");
      CHECK(one.identity == all[7].identity);
    }
    CHECK(samples == shard.samples);
    CHECK(shard.seconds == 3.0 * static_cast<double>(samples));
  }
  CHECK(keys == keys_in_order(planned));
  // Tars are named from where the plan was made.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(planned.folder.path);
  write_plan_file(planned.plan, path);
  std::filesystem::current_path(here);
  CHECK(read_plan_file(path).inputs[0].tars ==
        std::vector<std::string>{planned.folder / "a/x.tar.gz", "/x.embed.tar"});
  write_plan_file(planned.plan, path);
  // What is damaged is told before it is used.
  std::string bytes = io::read_file(path);
  bytes[plan.shards[1].begin] ^= 1;
  planned.folder.write("plan.bin", bytes);
  const WritePlan damaged = read_plan_file(path);
  CHECK(planned_items(damaged, damaged.shards[0]) == planned_items(plan, plan.shards[0]));
  CHECK_THROWS_WITH(planned_items(damaged, damaged.shards[1]),
                    "the samples of '" + plan.shards[1].path +
                        "' are not as they were planned; make the plan again");
  bytes[bytes.size() - 60] ^= 1;
  planned.folder.write("plan.bin", bytes);
  CHECK(read() ==
        "'plan.bin' is no plan: its end is not as it was written; make it again with "
        "vfm-shard plan");
  planned.folder.write("plan.bin", "a plan");
  CHECK(read() == "'plan.bin' is no plan: it is too short; make it again with vfm-shard plan");
  write_plan_file(planned.plan, path);
  planned.folder.write("plan.json", R"({"plan":"0"})");
  CHECK(read() ==
        "'plan.bin' is of another plan than 'plan.json'; make it again with vfm-shard "
        "plan");
}

TEST_CASE(
    "sources are known by name, by path when they were repaired, by contents if only by key") {
  Item named = item("k");
  named.source = "0a1b", named.path = "raw/a.mp4";
  const std::vector<KnownSource> there = {known(named, "val"), known(item("000042"), "train")};
  const auto ask = [](const Item& one, const std::vector<KnownSource>& known) {
    ShardOptions options;  // a new source goes to the large part
    options.split = {{"new", 0.98}, {"train", 0.01}, {"val", 0.01}};
    PlannedSamples planned({one}, options, known);
    return splits(planned).begin()->second + (planned.plan.any_known ? " known" : "");
  };
  {
    PlannedSamples planned({named, item("000042")}, halves(), there);
    CHECK(planned.sources() ==
          R"({"source":"000042","content":"content of 000042","split":"train"})"
          "\n"
          R"({"source":"0a1b","path":"raw/a.mp4","split":"val"})"
          "\n");
  }
  CHECK(ask(named, there) == "val known");
  Item repaired = named;
  repaired.source = "ffff";
  CHECK(ask(repaired, there) == "val known");
  Item moved = repaired;
  moved.path.clear();
  CHECK(ask(moved, there) == "new");
  Item foreign = item("000042");
  CHECK(ask(foreign, there) == "train known");
  foreign.content = "other";
  CHECK(ask(foreign, there) == "train");
  // A path that two splits had says nothing.
  Item twice = named;
  twice.source = "2222";
  std::vector<KnownSource> both = there;
  both.push_back(known(twice, "train"));
  CHECK(ask(repaired, both) == "new known");
  CHECK(ask(named, both) == "val known");
  // What was put last counts.
  both.push_back(known(named, "train"));
  CHECK(ask(named, both) == "train known");
}

TEST_CASE("sources.jsonl is read, and refused where it is none") {
  const TemporaryFolder folder;
  const std::string path = folder / "sources.jsonl";
  folder.write("sources.jsonl", R"({"source":"a","path":"p","content":"c","split":"val"})"
                                "\n");
  KnownSources known = KnownSources::read(path, folder.path);
  KnownSources::Names names(known);
  REQUIRE(names.front());
  CHECK(names.front()->line() ==
        "{\"source\":\"a\",\"path\":\"p\",\"content\":\"c\",\"split\":\"val\"}\n");
  names.pop();
  CHECK_FALSE(names.front());
  for (const char* wrong : {"[]\n", "{}\n", "{\"source\":\"a\"}\n", "x\n"}) {
    folder.write("sources.jsonl", wrong);
    CHECK_THROWS_AS(KnownSources::read(path, folder.path), Error);
  }
}
