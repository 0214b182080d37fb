// Who gets the next slot, and what that makes of a pipe: simulated, beside every static split.
// SPDX-License-Identifier: Apache-2.0
#include "share/slot_rule.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "support/simulated_pipe.h"

using namespace vfm;
using namespace vfm::share;

namespace {

/// Seconds of an item in each of three stages, before and after the bottleneck moves.
struct Load {
  std::array<int, 3> fan_out;
  std::array<double, 3> before, after;
  bool unlike = false;  // one item of twenty takes twenty times as long as the others
};

/// Of one item of twenty 20, of the others 1, divided by their mean; without a pattern.
double unlike_share(std::int64_t number, std::size_t stage) {
  std::uint64_t mixed = static_cast<std::uint64_t>(number) * 3 + stage + 1;
  mixed *= 0x9E3779B97F4A7C15u;
  mixed ^= mixed >> 32;
  return (mixed % 20 == 0 ? 20.0 : 1.0) / 1.95;
}

/// `first` items as before, `then` as after the move.
SimulatedPipe pipe_of(const Load& load, std::int64_t first, std::int64_t then) {
  SimulatedPipe pipe;
  pipe.items = first + then;
  for (std::size_t s = 0; s < 3; ++s)
    pipe.stages.push_back({load.fan_out[s], [=](std::int64_t number, std::int64_t source) {
                             const double mean = source < first ? load.before[s] : load.after[s];
                             return mean * (load.unlike ? unlike_share(number, s) : 1);
                           }});
  return pipe;
}

/// As many items as sixteen slots work on in so many seconds.
std::int64_t items_in(double seconds, const Load& load, const std::array<double, 3>& each) {
  double work = each[0];
  work += load.fan_out[0] * (each[1] + load.fan_out[1] * each[2]);
  return static_cast<std::int64_t>(seconds * 16 / work);
}

/// The least time of all static splits.
double best_split(SimulatedPipe pipe) {
  double best = 1e9;
  for (const auto& split : splits_of(16)) {
    pipe.split = split;
    best = std::min(best, pipe.run().end());
  }
  return best;
}

const std::vector<Load> kLoads = {
    {{4, 1, 1}, {.08, .02, .06}, {.08, .06, .02}},
    {{1, 1, 1}, {.02, .02, .2}, {.2, .02, .02}},
    {{8, 1, 1}, {.4, .02, .02}, {.1, .1, .02}},
    {{1, 8, 1}, {.02, .1, .05}, {.2, .1, .01}},
    {{4, 4, 1}, {.4, .1, .01}, {.1, .1, .05}},
    {{4, 1, 1}, {.08, .02, .06}, {.08, .06, .02}, true},
    {{1, 1, 1}, {.05, .05, .05}, {.05, .02, .2}, true},
};

/// Phases of so many seconds. Of each what its best split does is asked for, though no split is the
/// best of both.
void compare(const Load& load, double phase) {
  CAPTURE(load.fan_out[0], load.fan_out[1], load.unlike);
  const std::int64_t first = items_in(phase, load, load.before);
  const std::int64_t then = items_in(phase, load, load.after);
  const double best_before = static_cast<double>(first) / best_split(pipe_of(load, first, 0));
  const double best_after = static_cast<double>(then) / best_split(pipe_of(load, 0, then));
  CHECK(static_cast<double>(first) / pipe_of(load, first, 0).run().end() >= .95 * best_before);
  CHECK(static_cast<double>(then) / pipe_of(load, 0, then).run().end() >= .95 * best_after);
  // Of one run, 5 s after the first item that is of the second phase came out.
  const std::int64_t long_after = items_in(phase + 10, load, load.after);
  const auto moved = pipe_of(load, first, long_after).run();
  const auto at = std::find_if(moved.sources.begin(), moved.sources.end(),
                               [&](std::int64_t source) { return source >= first; });
  const double since = moved.times[static_cast<std::size_t>(at - moved.sources.begin())] + 5;
  const double each = load.fan_out[0] * load.fan_out[1] * load.fan_out[2];
  CHECK(moved.rate(since, since + phase) / each >= .95 * best_after);
}

}  // namespace

TEST_CASE("a free slot is for the latest program that has an item, then for help") {
  using Claims = std::vector<SlotClaim>;
  CHECK(next_claim(Claims{}) == -1);
  CHECK(next_claim(Claims{{.place = 0, .held = 0, .most = 4}}) == -1);
  Claims claims = {{.place = 2, .held = 0, .most = 4, .items = 1},
                   {.place = 0, .held = 0, .most = 4, .items = 9, .help = 1},
                   {.place = 3, .held = 0, .most = 4, .items = 0, .help = 2}};
  CHECK(next_claim(claims) == 0);
  claims[0].held = 4;  // all that it may have
  CHECK(next_claim(claims) == 1);
  claims[1].items = 0;
  CHECK(next_claim(claims) == 2);
  claims[2].help = 0;
  CHECK(next_claim(claims) == 1);
}

TEST_CASE("the simulated pipe does what can be told without it") {
  // One slot each, 10 items of 1 s: the first is through after 3 s, then one comes a second.
  Load load{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  SimulatedPipe pipe = pipe_of(load, 10, 0);
  pipe.split = {1, 1, 1};
  const auto times = pipe.run().times;
  REQUIRE(times.size() == 10);
  for (std::size_t i = 0; i < times.size(); ++i)
    CHECK(times[i] == Approx(3.0 + static_cast<double>(i)));
  // Three that are shared do the same work in the same time, and two of any kind in 15 s.
  pipe.split.clear();
  pipe.slots = 3;
  CHECK(pipe.run().end() <= 12.0);
  pipe.slots = 2;
  CHECK(pipe.run().end() == Approx(15).margin(1));
  // A stage of which each item becomes three records.
  load.fan_out = {3, 1, 1};
  CHECK(pipe_of(load, 10, 0).run().times.size() == 30);
}

namespace {

/// Of the slots, how many are busy with unlike items where so many results may wait: of one
/// program, and of three that share.
void compare_windows(int slots) {
  for (const bool three : {false, true}) {
    SimulatedPipe pipe = pipe_of(kLoads[5], three ? 60 * slots : 300 * slots, 0);
    if (!three) pipe.stages.resize(1);
    pipe.slots = slots;
    const auto busy = [&](int results) {
      pipe.results = static_cast<std::size_t>(results);
      const auto result = pipe.run();
      return result.busy / (slots * result.end());
    };
    const double few = busy(0), many = busy(16 * slots);
    CAPTURE(slots, three, few, many);
    CHECK(many >= .95);
    CHECK(many > few + .05);
  }
}

}  // namespace

TEST_CASE("unlike items keep the slots busy where many results may wait") {
  compare_windows(16);
}

TEST_CASE("unlike items keep few and many slots busy", "[nightly]") {
  compare_windows(4);
  compare_windows(64);
}

TEST_CASE("shared slots do what the best static split does, and follow the bottleneck") {
  compare(kLoads[0], 2);
  compare(kLoads[5], 4);
}

TEST_CASE("shared slots do what the best static split does, for all loads", "[nightly]") {
  for (const Load& load : kLoads)
    compare(load, load.unlike ? 60 : 15);
}

TEST_CASE("what waits between two programs is least where the latest comes first") {
  const auto first_of_pipe = [](std::span<const SlotClaim> claims) {
    const auto found = std::find_if(claims.begin(), claims.end(), [](const SlotClaim& c) {
      return c.items > 0 && c.held < c.most;
    });
    return found == claims.end() ? -1 : static_cast<int>(found - claims.begin());
  };
  for (std::size_t i = 0; i < 5; ++i) {
    SimulatedPipe pipe = pipe_of(kLoads[i], items_in(12, kLoads[i], kLoads[i].before), 0);
    const auto latest = pipe.run();
    pipe.rule = first_of_pipe;
    const auto first = pipe.run();
    CAPTURE(i, latest.most_waiting, first.most_waiting);
    CHECK(latest.most_waiting <= first.most_waiting);
    CHECK(latest.end() <= 1.02 * first.end());
  }
}
