// Signs that a training is worse than it need be: each told where it is, and only there.
// SPDX-License-Identifier: Apache-2.0
#include "train/signs.h"

#include <catch2/catch.hpp>

using namespace vfm;
using namespace vfm::train;

namespace {

Json timing_of(double seconds) {
  return {{"seconds_per_step", seconds},
          {"memory_peak", 50},
          {"data_wait", 0.02},
          {"mfu", 0.5},
          {"busy_seconds", {{"mean", seconds}, {"most", 1.05 * seconds}, {"rank", 3}}},
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
  const std::string slow = words({.straggler = 1.3, .slowest = 7});
  CHECK(slow.find("rank 7 is busy 30 % longer") == 0);
}

TEST_CASE("a run tells each sign once, and none of its first line") {
  SignWatch watch;
  Json timing = timing_of(2);
  timing["mfu"] = 0.2;
  CHECK(watch.news(timing, Device::cpu).empty());
  CHECK(watch.news(timing, Device::cpu).size() == 1);
  CHECK(watch.news(timing, Device::cpu).empty());
  timing["data_wait"] = 0.3;
  CHECK(watch.news(timing, Device::cpu).size() == 1);
}
