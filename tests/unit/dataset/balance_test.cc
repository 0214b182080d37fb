// --balance: the rules, what a sample says of itself, fair shares, and who is left out.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/balance.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/hash.h"
#include "dataset_run.h"
#include "support/heard_log.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// Samples with no media, only what the rules ask for.
class Balancing {
 public:
  explicit Balancing(std::vector<BalanceRule> rules) { options.rules = std::move(rules); }

  void add(const std::string& key, const Json& meta, const std::vector<float>& vector = {}) {
    JoinedSample sample;
    sample.key = key;
    sample.meta = meta;
    const std::string npy = vector_of(vector);
    if (!vector.empty()) sample.members = {{"text.npy", npy}};
    Item item;
    item.key = item.source = key;
    put_balance_notes(item.notes, sample, options.rules, encoders);
    std::string_view rest = item.notes += "rest";
    skip_balance_notes(rest, options.rules);
    CHECK(rest == "rest");
    batch_.add(item);
  }
  /// The rules' JSON, one a line.
  std::string balance(std::uint64_t seed = 0) {
    items.take(batch_, 0);
    items.settle_keys([](std::uint32_t, const Item&, const Item&) {});
    share::Slots slots(1);
    const HeardLog heard;
    std::string told;
    for (const Balanced& rule : dataset::balance(items, options, seed, encoders, slots, list))
      told += dump_json(rule.json()) + "\n";
    log = HeardLog::text();
    return told;
  }
  std::string kept() const {
    std::string keys;
    items.for_each_kept([&](std::uint32_t, const Item& item) { keys += item.key + " "; });
    return keys;
  }
  std::string left_out() {
    std::string lines;
    list.for_each([&](const LeftOut& sample) {
      lines += dump_json(sample.json()) + "\n";
      return true;
    });
    return lines;
  }

  MemoryFolder folder;
  BalanceOptions options;
  VectorNames encoders;
  ItemStore items{folder.path, 0, false, true};
  LeftOutList list{folder.path};
  std::string log;

 private:
  ItemBatch batch_{folder.path};
};

}  // namespace

TEST_CASE("rules of --balance are names with strengths above 0 and up to 1") {
  const auto parsed = [](const char* text) {
    BalanceOptions options;
    options.rules = parse_balance(text);
    return dump_json(options.json());
  };
  CHECK(parsed("camera") == R"({"camera":1.0})");
  CHECK(parsed("b=0.25,a,text.npy=1") == R"({"b":0.25,"a":1.0,"text.npy":1.0})");
  CHECK(parse_balance("text.npy")[0].clusters());
  CHECK_FALSE(parse_balance("npy")[0].clusters());
  std::string said;
  for (const char* wrong : {"", "=1", "a,", "a=", "a=0", "a=-1", "a=1.0001", "a=nan", "a=1x", "a=x",
                            "a,b,a=1", ".npy", "a/b.npy", ".a.npy"})
    said += usage_error([&] { parse_balance(wrong); }) + "\n";
  CHECK(said ==
        "--balance: '' names no field; give FIELD or FIELD=STRENGTH, with commas between\n"
        "--balance: '=1' names no field; give FIELD or FIELD=STRENGTH, with commas between\n"
        "--balance: '' names no field; give FIELD or FIELD=STRENGTH, with commas between\n"
        "--balance: the strength of 'a' is '', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is '0', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is '-1', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is '1.0001', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is 'nan', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is '1x', and not above 0 and up to 1\n"
        "--balance: the strength of 'a' is 'x', and not above 0 and up to 1\n"
        "--balance: 'a' is named twice\n"
        "--balance: '.npy' is not the name of a member with vectors, such as video.npy or "
        "text.npy\n"
        "--balance: 'a/b.npy' is not the name of a member with vectors, such as video.npy or "
        "text.npy\n"
        "--balance: '.a.npy' is not the name of a member with vectors, such as video.npy or "
        "text.npy\n");
}

TEST_CASE(
    "a value is the JSON of a field; 30.0 is 30, and of a long one a hash stands at the end") {
  Balancing run({{"v", 1}});
  int number = 0;
  const std::string fits(254, 'x'), over(255, 'x'),
      umlauts = "\"" + std::string(126, 'y') + std::string(100, '\xc3');
  std::string wide = std::string(126, 'y');
  for (int i = 0; i < 100; ++i)
    wide += "ä";
  for (const Json& value : {Json(30), Json(30.0), Json("30"), Json(30.5), Json(true), Json("true"),
                            Json(nullptr), Json{{"a", 1}}, Json(fits), Json(over), Json(wide)})
    run.add(fmt::format("k{:02}", number++), Json{{"v", value}});
  run.add("none", Json{{"w", 1}});
  const Json told = parse_json(run.balance(), "told");
  std::map<std::string, std::uint64_t> samples;
  for (const Json& one : told["largest"])
    samples[dump_json(one["value"])] = one["samples"];
  const auto cut = [](const std::string& text, std::size_t bytes) {
    const std::string json = dump_json(Json(text));
    return dump_json(Json(json.substr(0, bytes) + "... " + hash_hex(json)));
  };
  CHECK(samples == std::map<std::string, std::uint64_t>{{"30", 2},
                                                        {"\"30\"", 1},
                                                        {"30.5", 1},
                                                        {"true", 1},
                                                        {"\"true\"", 1},
                                                        {"null", 2},
                                                        {"{\"a\":1}", 1},
                                                        {"\"" + fits + "\"", 1},
                                                        {cut(over, 128), 1},
                                                        {cut(wide, 127), 1}});
  CHECK(told["values"] == 10);
  CHECK(told["samples"] == 12);
}

TEST_CASE("of each value the fair share stays, rounded up, and the same samples for any strength") {
  std::string all;
  std::vector<std::set<std::string>> out;
  for (const double strength : {1.0, 0.5, 0.1}) {
    Balancing run({{"kind", strength}});
    for (int i = 0; i < 60; ++i)
      run.add(fmt::format("k{:02}", i), i == 59 ? Json::object()
                                                : Json{{"kind", i < 40   ? "a"
                                                                : i < 55 ? "b"
                                                                         : "c"}});
    all += run.balance();
    CHECK(run.log.empty());
    out.emplace_back();
    run.list.for_each([&](const LeftOut& sample) {
      out.back().insert(sample.key);
      return true;
    });
    std::set<std::string> kept;
    run.items.for_each_kept([&](std::uint32_t, const Item& item) { kept.insert(item.key); });
    CHECK(kept.size() + out.back().size() == 60);
    CHECK(run.list.count(LeftOutReason::balance) == out.back().size());
  }
  CHECK(all ==
        R"({"by":"kind","strength":1.0,"values":4,"samples":60,"left_out":25,)"
        R"("largest":[{"value":"a","samples":40,"most":15,"stay":15},{"value":"b","samples":15,)"
        R"("most":15,"stay":15},{"value":"c","samples":4,"most":4,"stay":4},{"value":null,)"
        R"("samples":1,"most":1,"stay":1}]})"
        "\n"
        R"({"by":"kind","strength":0.5,"values":4,"samples":60,"left_out":11,)"
        R"("largest":[{"value":"a","samples":40,"most":29,"stay":29},{"value":"b","samples":15,)"
        R"("most":15,"stay":15},{"value":"c","samples":4,"most":4,"stay":4},{"value":null,)"
        R"("samples":1,"most":1,"stay":1}]})"
        "\n"
        R"({"by":"kind","strength":0.1,"values":4,"samples":60,"left_out":1,)"
        R"("largest":[{"value":"a","samples":40,"most":39,"stay":39},{"value":"b","samples":15,)"
        R"("most":15,"stay":15},{"value":"c","samples":4,"most":4,"stay":4},{"value":null,)"
        R"("samples":1,"most":1,"stay":1}]})"
        "\n");
  for (int i : {1, 2})
    CHECK(std::ranges::includes(out[i - 1], out[i]));
  CHECK(out[2].size() < out[1].size());
}

TEST_CASE("a sample stays if all rules keep it; who drops it first says so; the seed draws") {
  const auto outcome = [](std::vector<BalanceRule> rules, std::uint64_t seed = 0,
                          bool back = false) {
    Balancing run(std::move(rules));
    for (int i = 0; i < 24; ++i) {
      const int n = back ? 23 - i : i;
      run.add(fmt::format("k{:02}", n), Json{{"a", n % 6 == 0 ? 0 : 1}, {"b", n % 4 == 1 ? 0 : 1}});
    }
    const std::string told = run.balance(seed);
    std::string keys = run.kept();
    if (back) {
      std::string turned;
      for (std::size_t at = 0; at < keys.size(); at += 4)
        turned = keys.substr(at, 4) + turned;
      keys = turned;
    }
    return std::tuple(told, keys, run.left_out());
  };
  const auto both = outcome({{"a", 1}, {"b", 1}});
  CHECK(std::get<0>(both) ==
        R"({"by":"a","strength":1.0,"values":2,"samples":24,"left_out":8,"largest":[{"value":1,)"
        R"("samples":20,"most":12,"stay":12},{"value":0,"samples":4,"most":4,"stay":2}]})"
        "\n"
        R"({"by":"b","strength":1.0,"values":2,"samples":24,"left_out":6,"largest":[{"value":1,)"
        R"("samples":18,"most":12,"stay":12},{"value":0,"samples":6,"most":6,"stay":2}]})"
        "\n");
  CHECK(std::get<1>(both) == "k01 k03 k04 k07 k08 k10 k11 k12 k14 k16 k17 k18 k19 k23 ");
  CHECK(std::get<2>(both) ==
        R"({"key":"k00","reason":"balance","by":"b","value":1,"samples":18,"most":12})"
        "\n"
        R"({"key":"k02","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k05","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k06","reason":"balance","by":"b","value":1,"samples":18,"most":12})"
        "\n"
        R"({"key":"k09","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k13","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k15","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k20","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k21","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n"
        R"({"key":"k22","reason":"balance","by":"a","value":1,"samples":20,"most":12})"
        "\n");
  CHECK(outcome({{"a", 1}, {"b", 1}}, 0, true) == both);
  CHECK(std::get<1>(outcome({{"b", 1}, {"a", 1}})) == std::get<1>(both));
  CHECK(std::get<1>(outcome({{"a", 1}, {"b", 1}}, 1)) != std::get<1>(both));
}

TEST_CASE("fifty values are told, the largest first; that almost nothing is left out is said") {
  const auto values = [](int samples, int count) {
    Balancing run({{"v", 1}});
    for (int i = 0; i < samples; ++i)
      run.add(fmt::format("k{:03}", i), Json{{"v", fmt::format("v{:02}", i % count)}});
    const Json told = parse_json(run.balance(), "told");
    return std::pair(told, run.log);
  };
  const Json told = values(104, 51).first;
  CHECK(told["values"] == 51);
  REQUIRE(told["largest"].size() == 50);
  CHECK(told["largest"][0]["value"] == "v00");
  CHECK(told["largest"][0]["samples"] == 3);
  CHECK(told["largest"][1]["value"] == "v01");
  CHECK(told["largest"][2]["samples"] == 2);
  CHECK(told["largest"][49]["value"] == "v49");
  CHECK(values(50, 50).first["largest"].size() == 50);
  CHECK(values(19, 19).second.empty());
  CHECK(values(20, 10).second.empty());
  CHECK(values(20, 11).second ==
        "--balance: 'v' has 11 values in 20 samples, so it leaves out almost nothing\n");
}

TEST_CASE("vectors are balanced by clusters, those without one are a value of their own") {
  const auto heaps = [](std::size_t clusters) {
    Balancing run({{"text.npy", 1}});
    run.options.clusters = clusters;
    for (int i = 0; i < 30; ++i) {
      std::vector<float> vector = {0, 0, 0};
      vector[i < 16 ? 0 : i < 25 ? 1 : 2] = 2;
      vector[i % 3] += 0.01f * static_cast<float>(i % 5);
      if (i == 29) vector.clear();
      if (i == 28) vector = {0, 0, 0};
      run.add(fmt::format("k{:02}", i), Json{{"text_encoder", {{"name", "own"}, {"hash", "1"}}}},
              vector);
    }
    const std::string told = run.balance();
    return told + run.left_out();
  };
  CHECK(heaps(3) ==
        R"({"by":"text.npy","strength":1.0,"values":4,"samples":30,"left_out":9,)"
        R"("encoder":{"name":"own","hash":"1"},"largest":[{"cluster":0,"samples":16,"most":8,)"
        R"("stay":8,"nearest":"k04"},{"cluster":2,"samples":9,"most":8,"stay":8,)"
        R"("nearest":"k24"},{"cluster":1,"samples":3,"most":3,"stay":3,"nearest":"k27"},)"
        R"({"cluster":null,"samples":2,"most":2,"stay":2}]})"
        "\n"
        R"({"key":"k00","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k02","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k03","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k05","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k06","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k09","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k13","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k15","reason":"balance","by":"text.npy","value":0,"samples":16,"most":8})"
        "\n"
        R"({"key":"k20","reason":"balance","by":"text.npy","value":2,"samples":9,"most":8})"
        "\n");
  const Json by_itself = parse_json(heaps(0).substr(0, heaps(0).find('\n')), "told");
  CHECK(by_itself["values"].get<int>() <= 6);  // the root of 28, and none
  // One centre of 64 vectors that are drawn of 90.
  Balancing many({{"text.npy", 1}});
  many.options.clusters = 1;
  for (int i = 0; i < 90; ++i) {
    const float angle = 0.001f * static_cast<float>(i * i);
    many.add(fmt::format("k{:02}", i), Json::object(), {std::cos(angle), std::sin(angle)});
  }
  CHECK(parse_json(many.balance(), "told")["largest"][0]["nearest"] == "k23");
  Balancing none({{"text.npy", 1}});
  none.add("a", Json::object());
  none.add("b", Json::object());
  CHECK(none.balance() ==
        R"({"by":"text.npy","strength":1.0,"values":1,"samples":2,"left_out":0,"encoder":null,)"
        R"("largest":[{"cluster":null,"samples":2,"most":2,"stay":2}]})"
        "\n");
  CHECK(none.kept() == "a b ");
  Balancing two({{"text.npy", 1}});
  two.add("a", Json{{"text_encoder", {{"name", "one"}, {"hash", "1"}}}}, {1, 0});
  two.add("b", Json{{"text_encoder", {{"name", "two"}, {"hash", "2"}}}}, {1, 0});
  CHECK(usage_error([&] { two.balance(); }).find("are of other encoders than those of others") !=
        std::string::npos);
}
