// The small parts of vfm-shard: vectors, lists of names, makers of fields, bins, known sources.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <limits>

#include "base/half.h"
#include "base/hash.h"
#include "base/philox.h"
#include "dataset/bins.h"
#include "dataset/field_makers.h"
#include "dataset/known_sources.h"
#include "dataset/left_out.h"
#include "dataset/sample_vector.h"
#include "dataset/without.h"
#include "dataset_run.h"
#include "support/heard_log.h"
#include "support/planned_samples.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::dataset;
using Catch::Contains;

namespace {

/// What vfm-shard reads of a member "text.npy".
SampleVector vector_in(const std::string& npy, const Json& meta = Json::object()) {
  JoinedSample sample;
  sample.key = "k";
  sample.meta = meta;
  sample.members = {{"txt", "text"}, {"text.npy", npy}};
  return sample_vector(sample, "text.npy");
}

SampleVector named(std::uint64_t encoder, std::string by) {
  return {.values = {1}, .encoder = encoder, .by = std::move(by)};
}

}  // namespace

TEST_CASE("a vector is the array, or the mean of its rows, each of length 1") {
  const auto rows = [](std::vector<std::int64_t> shape, std::vector<float> values) {
    return vector_in(io::make_npy_float(shape, values)).values;
  };
  using Values = std::vector<float>;
  CHECK(rows({3}, {1, 2, 3}) == Values{1, 2, 3});
  CHECK(rows({1, 3}, {1, 2, 3}) == Values{1, 2, 3});
  CHECK(rows({2, 2}, {3, 4, 0, 2}) == Values{0.6f, 1.8f});
  CHECK(rows({4, 2}, {3, 4, 0, 0, std::numeric_limits<float>::infinity(), 1, 0, 2}) ==
        Values{0.6f, 1.8f});
  CHECK(rows({2, 2}, {0, 0, 0, 0}).empty());
  CHECK(rows({0, 2}, {}).empty());
  CHECK(rows({2, 1, 2}, {3, 4, 0, 2}) == Values{3, 4, 0, 2});
  JoinedSample without;
  without.meta = Json::object();
  CHECK(sample_vector(without, "text.npy").values.empty());
  CHECK_THROWS_WITH(vector_in("no array"), Contains("'k.text.npy'"));
}

TEST_CASE("vectors are of one encoder if its identity and their lengths are equal") {
  const auto encoder = [](const char* of, int dim) {
    Json meta = Json::object();
    if (*of) meta["text_encoder"] = parse_json(of, "of");
    meta["video_encoder"] = "not asked";
    return vector_in(vector_of(std::vector<float>(static_cast<std::size_t>(dim), 1)), meta);
  };
  const SampleVector one = encoder(R"({"name":"own","path":"/a","hash":"1"})", 2);
  CHECK(one.by == R"({"name":"own","hash":"1"})");
  CHECK(one.encoder == random_key("2 " + one.by));
  CHECK(encoder(R"({"name":"own","path":"/b","hash":"1"})", 2).encoder == one.encoder);
  CHECK(encoder(R"({"name":"own","path":"/a","hash":"2"})", 2).encoder != one.encoder);
  CHECK(encoder(R"({"name":"own","path":"/a","hash":"1"})", 3).encoder != one.encoder);
  CHECK(encoder("", 2).by.empty());
  CHECK(encoder("", 2).encoder == random_key("2 "));
}

TEST_CASE("a vector of length 1 is kept as halves, none of zeros or without an end") {
  CHECK(unit_halves({}).empty());
  CHECK(unit_halves({0, 0}).empty());
  CHECK(unit_halves({1, std::numeric_limits<float>::infinity()}).empty());
  const std::string halves = unit_halves({30, -40});
  REQUIRE(halves.size() == 4);
  std::vector<std::uint16_t> bits(2);
  std::memcpy(bits.data(), halves.data(), 4);
  std::vector<float> values(2);
  halves_to_floats(bits, values);
  CHECK(values[0] == Approx(0.6).epsilon(1e-3));
  CHECK(values[1] == Approx(-0.8).epsilon(1e-3));
}

TEST_CASE("sixty-four encoders are known by name, the same ones in any order") {
  VectorNames up, down, merged, half;
  for (std::uint64_t i = 0; i < 70; ++i) {
    up.add(named(i, fmt::format("[{}]", i)));
    down.add(named(69 - i, fmt::format("[{}]", 69 - i)));
    (i < 35 ? merged : half).add(named(i, fmt::format("[{}]", i)));
  }
  merged.merge(half);
  for (const VectorNames* names : {&up, &down, &merged}) {
    CHECK(names->of(0) == Json::array({0}));
    CHECK(names->of(63) == Json::array({63}));
    CHECK(names->of(64) == nullptr);
  }
  VectorNames names;
  names.add(named(1, "\"" + std::string(4094, 'a') + "\""));
  names.add(named(2, "\"" + std::string(4095, 'a') + "\""));
  names.add(named(3, ""));
  names.add({.values = {}, .encoder = 4, .by = "4"});
  names.add(named(5, "5"));
  names.add(named(5, "6"));
  CHECK(names.of(1) == std::string(4094, 'a'));
  for (const std::uint64_t encoder : {2, 3, 4})
    CHECK(names.of(encoder) == nullptr);
  CHECK(names.of(5) == 5);
  for (const char* good : {"a.npy", "a.b.npy", "video.npy"})
    check_vector_name("--option", good);
  for (const char* bad : {"", "npy", ".npy", "a.npy ", "a/b.npy", "a b.npy", ".a.npy", "a.npx"})
    CHECK(usage_error([&] { check_vector_name("--option", bad); }) ==
          fmt::format("--option: '{}' is not the name of a member with vectors, such as video.npy "
                      "or text.npy",
                      bad));
}

TEST_CASE("a field that vfm makes has a command, also one of a family") {
  const auto makers = [](std::vector<const char*> names) {
    std::string all;
    for (const char* name : names)
      all += maker_of(name) + "\n";
    return all;
  };
  CHECK(makers({"motion", "speech", "aesthetic", "text.npy", "concept_cat", "concept_cat_2",
                "caption_short", "caption_fit", "caption_quality", "video_encoder"}) ==
        "vfm-clip\nvfm-clip\nvfm-embed --aesthetic FILE\nvfm-embed --text DIR\n"
        "vfm-embed --concept NAME=TEXT\nvfm-embed --concept NAME=TEXT\n"
        "vfm-caption --also NAME=TEXT\nvfm-caption score --clip DIR\n"
        "vfm-caption score --model DIR --clip DIR\nvfm-embed\n");
  CHECK(makers({"", "concept", "concept_", "_x", "motio", "motion speech", "other_x", "_"}) ==
        "\n\n\n\n\n\n\n\n");
  const std::vector<std::string> made = made_names();
  CHECK(made.front() == "motion");
  CHECK(made.back() == "text_image");
  CHECK(std::ranges::count(made, "caption_fit_least") == 1);
  CHECK(std::ranges::count_if(made, [](const auto& name) { return name.ends_with('*'); }) == 0);
  for (const std::string& name : made)
    CHECK_FALSE(maker_of(name).empty());
}

TEST_CASE("what is left out is listed by key, with its reason") {
  const MemoryFolder folder;
  LeftOutList list(folder.path);
  const std::vector<LeftOut> all = {{"b", LeftOutReason::balance, "kind", "{\"a\":1}", 40, 15},
                                    {"a", LeftOutReason::without, "source", "raw/a.mp4", 0, 0},
                                    {"c", LeftOutReason::balance, "text.npy", "", 5, 5},
                                    {"d", LeftOutReason::balance, "kind", "\"cut... 12", 3, 2}};
  for (const LeftOut& one : all)
    list.add(one);
  list.park();
  CHECK(list.count() == 4);
  CHECK(list.count(LeftOutReason::balance) == 3);
  CHECK(list.count(LeftOutReason::without) == 1);
  const auto lines = [&](int most) {
    std::string text;
    list.for_each([&](const LeftOut& sample) {
      text += dump_json(sample.json()) + "\n";
      return --most > 0;
    });
    return text;
  };
  CHECK(lines(9) ==
        R"({"key":"a","reason":"without","by":"source","line":"raw/a.mp4"})"
        "\n"
        R"({"key":"b","reason":"balance","by":"kind","value":{"a":1},"samples":40,"most":15})"
        "\n"
        R"({"key":"c","reason":"balance","by":"text.npy","value":null,"samples":5,"most":5})"
        "\n"
        R"({"key":"d","reason":"balance","by":"kind","value":"\"cut... 12","samples":3,)"
        R"("most":2})"
        "\n");
  CHECK(lines(1) ==
        "{\"key\":\"a\",\"reason\":\"without\",\"by\":\"source\",\"line\":\"raw/a.mp4\"}\n");
}

TEST_CASE("lines of --without are sources and keys, each once; a line has an end") {
  const MemoryFolder folder;
  const auto list = [&](const std::string& text) {
    folder.write("list", text);
    return WithoutList(folder / "list");
  };
  const WithoutList none("");
  CHECK(none.empty());
  CHECK_FALSE(none.find(Json{{"key", ""}}));
  const WithoutList some = list("k1\r\n\r\n\nsrc\nk1\n old \nlast");
  CHECK(some.lines() == std::deque<std::string>{"k1", "src", " old ", "last"});
  CHECK(some.has("last"));
  CHECK_FALSE(some.has("old"));
  const auto found = [&](const char* json) {
    const auto named = some.find(parse_json(json, "json"));
    return named ? fmt::format("{}{}", named->line, named->source ? " source" : "") : "none";
  };
  CHECK(found(R"({"key":"k1","source":"src"})") == "0");
  CHECK(found(R"({"key":"new","original_key":"k1"})") == "0");
  CHECK(found(R"({"key":"k","source":"src"})") == "1 source");
  CHECK(found(R"({"key":"k","source_hash":"src","source":"s"})") == "1 source");
  CHECK(found(R"({"key":"src"})") == "1");
  CHECK(found(R"({"key":"k","name":"src"})") == "none");
  CHECK(list(std::string(65536, 'x') + "\n").lines().size() == 1);
  const auto refused = [&](const std::string& text) {
    std::string said = usage_error([&] { list(text); });
    if (const std::size_t at = said.find(folder.path); at != std::string::npos)
      said.replace(at, folder.path.size(), "DIR");
    return said;
  };
  CHECK(refused("a\n" + std::string(65537, 'x') + "\n") ==
        "--without: line 2 of 'DIR/list' has 65537 bytes, and no source or key has more than "
        "65536");
  CHECK(refused("\n\r\n") == "--without: 'DIR/list' names no source and no key");
}

TEST_CASE("a known path has the split of its sources, if they are of one") {
  const MemoryFolder folder;
  KnownSources known(folder.path);
  CHECK(known.empty());
  for (const KnownSource& source : std::vector<KnownSource>{{"s1", "b", "", "train"},
                                                            {"s2", "d", "", "val"},
                                                            {"s3", "d", "", "train"},
                                                            {"s4", "e", "", "val"},
                                                            {"s5", "e", "", "val"},
                                                            {"s6", "", "content", "val"}})
    known.put(source);
  CHECK_FALSE(known.empty());
  KnownSources::Paths paths(known);
  std::string all;
  for (const char* path : {"", "a", "b", "b", "c", "d", "d", "e", "f"}) {
    const auto split = paths.find(path);
    all += split ? "'" + *split + "' " : "none ";
  }
  CHECK(all == "none none 'train' 'train' none '' '' 'val' none ");
}

TEST_CASE("a folder's name has the extensions, or a hash where it would be long or unclear") {
  CHECK(name_part({}) == "");
  CHECK(name_part({"txt", "text.npy"}) == "txt_text-npy");
  const std::string longest(40, 'a');
  CHECK(name_part({longest}) == longest);
  CHECK(name_part({longest + "a"}) == "members" + hash_hex(longest + "a\n").substr(0, 8));
  CHECK(name_part({"a-b"}) == "members" + hash_hex("a-b\n").substr(0, 8));
  CHECK(name_part({"c", "a_b"}) == "members" + hash_hex("c\na_b\n").substr(0, 8));
  CHECK(name_part({longest.substr(20), longest.substr(20)}) != name_part({longest}));
  CHECK(name_part({longest.substr(20), longest.substr(21)}) ==
        longest.substr(20) + "_" + longest.substr(21));
}

TEST_CASE("a part of the split that gets nothing is told, with the reason") {
  const auto item = [](const std::string& key, const std::string& content) {
    Item one;
    one.key = one.source = key;
    one.shape.media = "mp4";
    one.content = content, one.identity = key;
    return one;
  };
  ShardOptions options;
  options.split = {{"train", 0.9}, {"val", 0.1}};
  const auto said = [&](const std::vector<Item>& items,
                        const std::vector<KnownSource>& known = {}) {
    const HeardLog heard;
    PlannedSamples planned(items, options, known);
    return HeardLog::text();
  };
  CHECK(said({item("a", "1"), item("b", "2")}).empty());
  CHECK(said({item("a", "1")}) == "split 'val' is empty: there is only 1 source to assign\n");
  options.keep_duplicates = true;
  CHECK(said({item("a", "1"), item("b", "1")}) ==
        "split 'val' is empty: there is only 1 source to assign; sources that hold duplicates of "
        "one another count as one\n");
  const KnownSource a{"a", "", "1", "val"}, b{"b", "", "1", "train"}, c{"c", "", "1", "train"};
  CHECK(said({item("a", "1"), item("b", "2")}, {a}).empty());
  CHECK(said({item("a", "1")}, {a}) ==
        "split 'train' is empty: an earlier run assigned all sources, and they stay; --force "
        "assigns all sources again\n");
  options.split.push_back({"test", 0.1});
  CHECK(said({item("a", "1"), item("b", "2")}, {a}) ==
        "split 'test' is empty: there is only 1 source to assign; an earlier run assigned the "
        "others\n");
  options.split.pop_back();
  const std::string torn = said({item("a", "1"), item("b", "1"), item("c", "1")}, {a, b, c});
  CHECK(torn ==
        "3 sources hold duplicates of sources of another split, 'b' is one; the earlier run "
        "assigned them, so they stay, and new sources with the same contents go to 'val'; --force "
        "assigns all sources again\n");
}

TEST_CASE("vectors of one encoder's name but other lengths are nobody's duplicates") {
  std::vector<Item> all(4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].key = all[i].source = all[i].content = all[i].identity = fmt::format("k{}", i);
    all[i].shape.media = "mp4";
    all[i].encoder = 1;
    all[i].embedding = i % 2 == 0 ? std::vector<float>{1, 0} : std::vector<float>{1, 0, 0};
  }
  ShardOptions options;
  for (const DuplicateMethod method : {DuplicateMethod::exact, DuplicateMethod::clusters}) {
    options.duplicate_method = method;
    PlannedSamples planned(all, options);
    std::string dropped;
    planned.plan.duplicates.for_each([&](const Duplicate& one) {
      dropped += one.key + " for " + one.keeper + ", ";
      return true;
    });
    CHECK(dropped == "k2 for k0, ");
  }
}

TEST_CASE("the memory that comparing takes is told by the sample; names have an end") {
  CHECK(near_bytes(64) == (64 + 1 + 64) * 4 + 160);
  CHECK(near_bytes(65) == (128 + 2 + 64) * 4 + 160);
  CHECK(near_bytes(768) == (768 + 12 + 64) * 4 + 160);
  CHECK(kPlaceInClusters == 40);
  CHECK(near_bytes_in_clusters() == 124);
  const MemoryFolder folder;
  ItemBatch batch(folder.path);
  Item item;
  item.key = "k", item.source = std::string(65534, 's'), item.path = "p";
  batch.add(item);
  item.path = "pp";
  CHECK_THROWS_WITH(batch.add(item), "'k' has a source of 65536 bytes, over 65536");
  ItemStore store(folder.path, 0, false, true);
  item.source = "s";
  for (const char* key : {"gone", "k", "drop", "last"}) {
    item.key = key, item.notes = std::string("notes of ") + key;
    batch.add(item);
  }
  store.take(batch, 3);
  std::string again;
  store.settle_keys([&](std::uint32_t number, const Item& later, const Item& first) {
    again += fmt::format("{} {} {}", number, later.key, first.source.size());
  });
  CHECK(again == "2 k 0");
  CHECK(store.size() == 5);
  CHECK(store.there() == 4);
  CHECK(store.is_there(1));
  CHECK_FALSE(store.is_there(2));
  store.drop(3);
  CHECK(store.is_there(3));
  CHECK_FALSE(store.is_kept(3));
  std::string noted;
  store.for_each_noted([&](std::uint32_t number, const std::string& key, std::string_view notes) {
    noted += fmt::format("{} {} {}, ", number, key, notes);
  });
  CHECK(noted == "0 k , 1 gone notes of gone, 4 last notes of last, ");
  CHECK(store.get(4).key == "last");
  CHECK(store.get(1).shard == 3);
  std::string runs;
  store.for_each_source_run([&](const ItemStore::SourceRun& run) {
    runs += fmt::format("{} {} {} {} {}, ", run.source.size(), run.path, run.first, run.count,
                        run.by_key);
  });
  CHECK(runs == "1 pp 1 4 false, 65534 p 0 1 false, ");
}

TEST_CASE("the page counts what is known of a sample") {
  Item item;
  using Values = std::array<std::optional<double>, kQuantities>;
  CHECK(quantities(item) == Values{std::nullopt, std::nullopt, std::nullopt, 0.0});
  item.seconds = 2, item.width = 640, item.media_bytes = 1'500'000;
  CHECK(quantities(item) == Values{2.0, std::nullopt, std::nullopt, 1.5});
  item.height = 320;
  CHECK(quantities(item) == Values{2.0, 320.0, 2.0, 1.5});
  item.width = 160;
  CHECK(quantities(item) == Values{2.0, 160.0, 0.5, 1.5});
  item.width = 0;
  CHECK(quantities(item) == Values{2.0, std::nullopt, std::nullopt, 1.5});
}

TEST_CASE("the options of a dataset are told; those that were not asked for are not named") {
  ShardOptions options;
  CHECK(dump_json(options_json(options)) ==
        R"({"where":null,"keep_duplicates":false,"duplicate_threshold":0.99,"rekey":false,)"
        R"("resolution_edges":[256.0,480.0,720.0,1080.0,2160.0],"aspect_edges":[0.65,0.88,1.16,)"
        R"(1.55],"duration_edges":[2.0,5.0,10.0,30.0],"split":{"train":1.0},)"
        R"("shard_bytes":500000000,"seed":0})");
  options.where = "q > 1", options.keep_duplicates = options.rekey = true;
  options.duplicate_threshold.reset();
  options.near_member = "text.npy", options.duplicate_method = DuplicateMethod::exact;
  options.edges.aspect.clear(), options.edges.resolution = {1}, options.edges.seconds = {2.5};
  options.split = {{"a", 0.25}, {"b", 0.75}}, options.shard_bytes = 7, options.seed = 8;
  options.balance.rules = {{"kind", 0.5}};
  CHECK(dump_json(options_json(options)) ==
        R"({"where":"q > 1","keep_duplicates":true,"duplicate_threshold":null,"rekey":true,)"
        R"("resolution_edges":[1.0],"aspect_edges":[],"duration_edges":[2.5],"split":{"a":0.25,)"
        R"("b":0.75},"shard_bytes":7,"seed":8,"near_duplicates":"text.npy",)"
        R"("duplicate_method":"exact","balance":{"kind":0.5}})");
  options = {};
  options.near_member = "video.npy", options.duplicate_method = DuplicateMethod::clusters;
  options.balance.rules = {{"text.npy", 1}}, options.balance.clusters = 9;
  const Json named = options_json(options);
  CHECK_FALSE(named.contains("near_duplicates"));
  CHECK(named["duplicate_method"] == "clusters");
  CHECK(named["balance_clusters"] == 9);
}
