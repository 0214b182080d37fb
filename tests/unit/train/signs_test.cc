// Signs that a training is worse than it need be: each told where it is, and only there.
// SPDX-License-Identifier: Apache-2.0
#include "train/report/signs.h"

#include <catch2/catch.hpp>

#include "base/json.h"

using namespace vfm;
using namespace vfm::train;

namespace {

Json timing_of(double seconds) {
  return {{"seconds_per_step", seconds},
          {"memory_peak", 50},
          {"data_wait", 0.02},
          {"mfu", 0.5},
          {"busy_seconds",
           {{"mean", seconds}, {"most", 1.05 * seconds}, {"rank", 3}, {"host", "node1"}}},
          {"wait_seconds", {{"tp", 0.1 * seconds}}}};
}

std::vector<std::string_view> kinds(const Json& timing, double usable = 100) {
  std::vector<std::string_view> all;
  for (const Sign& sign : signs_of(signs_of_timing(timing, usable)))
    all.push_back(sign.kind);
  return all;
}

std::string words(const Signs& signs) {
  const std::vector<Sign> all = signs_of(signs);
  REQUIRE(all.size() == 1);
  return all[0].words;
}

}  // namespace

TEST_CASE("a good step has no signs, and each fault its own") {
  CHECK(kinds(timing_of(2)).empty());
  Json timing = timing_of(2);
  timing["mfu"] = 0.2;
  CHECK(kinds(timing) == std::vector<std::string_view>{"mfu"});
  timing = timing_of(2);
  timing["memory_peak"] = 99;
  CHECK(kinds(timing) == std::vector<std::string_view>{"memory"});
  CHECK(kinds(timing, 0).empty());
  timing = timing_of(2);
  timing["data_wait"] = 0.3;
  CHECK(kinds(timing) == std::vector<std::string_view>{"data"});
  timing = timing_of(2);
  timing["busy_seconds"]["most"] = 2.6;
  CHECK(kinds(timing) == std::vector<std::string_view>{"straggler"});
  // Stages that wait are a bubble, and not what they exchange.
  timing = timing_of(2);
  timing["mfu"] = 0.2;
  timing["wait_seconds"] = {{"tp", 0.5}, {"pp", 0.8}};
  CHECK(kinds(timing) == std::vector<std::string_view>{"mfu", "bubble"});
  CHECK(signs_of_timing(timing, 0).exchange == "tp");
  // What lasts a moment is no sign of data or stragglers.
  timing = timing_of(0.01);
  timing["data_wait"] = 0.9;
  timing["busy_seconds"]["most"] = 1;
  CHECK(kinds(timing).empty());
}

TEST_CASE("a sign names the cause and the key to change") {
  const std::string tp = words({.mfu = 0.2, .exchange = "tp", .exchanged = 0.4});
  CHECK(tp.find("40 %") != std::string::npos);
  CHECK(tp.find("'parallel.tp'") != std::string::npos);
  const std::string cp = words({.mfu = 0.2, .exchange = "cp_ring", .exchanged = 0.4});
  CHECK(cp.find("'parallel.cp_kind'") != std::string::npos);
  const std::string dp = words({.mfu = 0.2, .exchange = "cp+dp", .exchanged = 0.4});
  CHECK(dp.find("'data.packs'") != std::string::npos);
  CHECK(words({.mfu = 0.2}).find("'data.tokens'") != std::string::npos);
  CHECK(words({.bubble = 0.3}).find("'data.packs'") != std::string::npos);
  CHECK(words({.data_wait = 0.3}).find("(-j)") != std::string::npos);
  CHECK(words({.memory = 0.99, .less_memory = "set 'x' 1"}) ==
        "memory is full to 99 % of what is usable, and a longer sample may not fit: set 'x' 1");
  CHECK(words({.memory = 5.73, .less_memory = "set 'x' 1"}) ==
        "memory is full to 573 % of what is usable: set 'x' 1");
  const std::string uneven = words({.straggler = 1.3});
  CHECK(uneven.find("the rank with the fullest packs is busy 30 % longer") == 0);
  CHECK(uneven.find("'data.window'") != std::string::npos);
  const std::string slow = words({.straggler = 1.3, .slowest = 7, .slowest_host = "node3"});
  CHECK(slow.find("rank 7 on host node3 is busy 30 % longer") == 0);
}

TEST_CASE("a run tells each sign once, and none of its first line") {
  SignWatch watch;
  Json timing = timing_of(2);
  timing["mfu"] = 0.2;
  const auto told = [&] { return watch.news(timing, 100).size(); };
  CHECK(told() == 0);  // the first line
  CHECK(told() + told() == 0);
  CHECK(told() == 1);
  CHECK(told() == 0);
  timing["data_wait"] = 0.3;
  CHECK(told() + told() == 0);
  timing["data_wait"] = 0.0;
  CHECK(told() == 0);
  timing["data_wait"] = 0.3;
  CHECK(told() + told() == 0);
  CHECK(told() == 1);
  timing["memory_peak"] = 99;
  const std::vector<std::string> full = watch.news(timing, 100, [] { return "set 'x' 1"; });
  REQUIRE(full.size() == 1);
  CHECK(full[0].ends_with(": set 'x' 1"));
}

TEST_CASE("a rank that is slow again is told again, but not for a moment in which it is not") {
  SignWatch watch;
  Json fast = timing_of(2), slow = timing_of(2);
  slow["busy_seconds"]["most"] = 2.6;
  const auto told = [&](const Json& timing, int lines) {
    std::vector<std::string> all;
    for (int i = 0; i < lines; ++i)
      for (const std::string& words : watch.news(timing, 100))
        all.push_back(words);
    return all;
  };
  told(fast, 1);
  REQUIRE(told(slow, 20).size() == 1);
  CHECK(told(fast, SignWatch::kLinesWithout - 1).empty());
  CHECK(told(slow, 20).empty());
  CHECK(told(fast, SignWatch::kLinesWithout).empty());
  CHECK(told(slow, SignWatch::kLinesInARow - 1).empty());
  const std::vector<std::string> again = told(slow, 20);
  REQUIRE(again.size() == 1);
  CHECK(again[0].starts_with("rank 3 on host node1 is busy 30 % longer"));
}

TEST_CASE("a plan and a dry run tell the same five") {
  const auto kinds_in = [](const Signs& signs) {
    std::vector<std::string_view> all;
    for (const Sign& sign : signs_of(signs))
      all.push_back(sign.kind);
    return all;
  };
  const Json good = {
      {"seconds", 2}, {"memory_bytes", 50}, {"mfu", 0.5}, {"terms", {{"products", 2}}}};
  CHECK(kinds_in(signs_of_plan(good, 100, 1.9)).empty());
  const auto with = [&](const char* key, const Json& value) {
    Json layout = good;
    layout[key] = value;
    return kinds_in(signs_of_plan(layout, 100));
  };
  using Kinds = std::vector<std::string_view>;
  CHECK(with("memory_bytes", 98) == Kinds{"memory"});
  CHECK(with("mfu", 0.2) == Kinds{"mfu"});
  CHECK(with("terms", {{"bubble", 0.5}}) == Kinds{"bubble"});
  CHECK(with("terms", {{"uneven packs", 0.5}}) == Kinds{"straggler"});
  CHECK(kinds_in(signs_of_plan(good, 100, 4)) == Kinds{"data"});
  CHECK(signs_of_plan(good, 100, 4).data_wait == Approx(0.5));

  // Where no time is known, shape alone tells: of 4 stages and 9 microbatches each waits 3 of 12.
  CHECK(kinds_in(signs_of_shape(0.5, 4, 1, 9, 1)) == Kinds{"bubble"});
  CHECK(signs_of_shape(0.5, 4, 1, 9, 1).bubble == Approx(0.25));
  CHECK(signs_of_shape(0.5, 4, 3, 9, 1).bubble == Approx(0.1));
  CHECK(kinds_in(signs_of_shape(0.98, 1, 1, 1, 1.2)) == Kinds{"memory", "straggler"});
}
