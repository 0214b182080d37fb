// Pipes of programs that share eight GPUs, in virtual time: what they have to do, how it changes,
// and what comes of it beside every static split of the GPUs. Of tests/unit/base/gpu_rule_test.cc
// and tests/bench/shared_gpus.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/simulated_gpus.h"

namespace vfm {

/// From 0 to 1, by splitmix64's mixing.
inline double mixed(std::int64_t number, std::size_t stage, std::uint64_t seed = 0) {
  std::uint64_t bits = (static_cast<std::uint64_t>(number) * 4 + stage + 1) * 0x9E3779B97F4A7C15u +
                       seed * 0xD1B54A32D192ED03u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((bits ^ (bits >> 31)) % 1000) / 1000;
}

/// Of 1 on average: all alike, from 0.1 to 1.9, or one of twenty 20 times as long as the others.
inline double alike(double) {
  return 1;
}
inline double spread(double by) {
  return .1 + 1.8 * by;
}
inline double unlike(double by) {
  return (by < .05 ? 20 : 1) / 1.95;
}

/// Seconds of an item of each stage, before and after the bottleneck moves.
struct GpuLoad {
  std::string name;
  std::vector<int> fan_out;
  std::vector<double> before, after;
  std::function<double(double)> sizes = alike;
  std::vector<std::int64_t> memory = {}, needs = {};
  std::uint64_t seed = 0;   ///< of the sizes
  std::size_t results = 0;  ///< SimulatedGpus::Stage
};

/// The bottleneck moves from the last to the first, on GPUs of these.
inline GpuLoad on_gpus(const std::string& name, const std::vector<std::int64_t>& memory,
                       const std::vector<std::int64_t>& needs) {
  return {name, {1, 1, 1}, {.02, .05, .2}, {.2, .05, .02}, alike, memory, needs};
}

inline const std::vector<GpuLoad> kGpuLoads = {
    {"third to second", {4, 1, 1}, {.08, .02, .06}, {.08, .06, .02}},
    {"last to first", {1, 1, 1}, {.02, .02, .2}, {.2, .02, .02}},
    {"first to second", {1, 1, 1}, {.2, .02, .02}, {.02, .2, .02}},
    {"eight of one", {8, 1, 1}, {.2, .02, .02}, {.1, .1, .015}},
    {"eight of one, second", {1, 8, 1}, {.02, .1, .05}, {.2, .1, .01}},
    {"sixteen of one", {4, 4, 1}, {.2, .1, .01}, {.1, .1, .05}},
    {"four stages", {1, 1, 1, 1}, {.02, .2, .02, .05}, {.1, .02, .02, .2}},
    on_gpus("unlike memory", {1, 1, 1, 1, 2, 2, 2, 2}, {1, 1, 2}),
    on_gpus("two models a GPU", {3, 3, 3, 3, 3, 3, 3, 3}, {1, 2, 2}),
    on_gpus("all models on each GPU", {3, 3, 3, 3, 3, 3, 3, 3}, {1, 1, 1}),
};

/// `first` items as before, `then` as after the move.
inline SimulatedGpus gpus_pipe_of(const GpuLoad& load, std::int64_t first, std::int64_t then) {
  SimulatedGpus pipe;
  pipe.items = first + then;
  for (std::size_t s = 0; s < load.fan_out.size(); ++s) {
    const auto seconds = [=](std::int64_t number, std::int64_t source) {
      const double mean = source < first ? load.before[s] : load.after[s];
      return mean * load.sizes(mixed(number, s, load.seed));
    };
    pipe.stages.push_back({load.fan_out[s], seconds, load.needs.empty() ? 1 : load.needs[s]});
    pipe.stages.back().results = load.results;
  }
  for (std::size_t c = 0; c < pipe.gpus.size() && !load.memory.empty(); ++c)
    pipe.gpus[c].memory = load.memory[c];
  return pipe;
}

/// All ways to give each GPU to one stage that its memory allows, at least one to each; of GPUs
/// that are alike it does not matter which.
inline std::vector<std::vector<share::GpuSet>> gpu_splits_of(const SimulatedGpus& pipe) {
  const std::size_t gpus = pipe.gpus.size(), stages = pipe.stages.size();
  std::vector<std::vector<share::GpuSet>> all;
  std::vector<std::size_t> stage_of(gpus, 0);
  for (;;) {
    bool counts = true;
    std::vector<share::GpuSet> split(stages, 0);
    for (std::size_t c = 0; c < gpus; ++c) {
      const bool like_last = c > 0 && pipe.gpus[c].memory == pipe.gpus[c - 1].memory;
      counts = counts && pipe.stages[stage_of[c]].memory <= pipe.gpus[c].memory &&
               !(like_last && stage_of[c] < stage_of[c - 1]);
      split[stage_of[c]] |= share::gpu_bit(static_cast<int>(c));
    }
    if (counts && std::find(split.begin(), split.end(), share::GpuSet{0}) == split.end())
      all.push_back(split);
    std::size_t c = 0;
    while (c < gpus && ++stage_of[c] == stages)
      stage_of[c++] = 0;
    if (c == gpus) return all;
  }
}

/// Records of the last stage a second that the best split has over so long, from when its buffers
/// are full.
inline double best_gpu_split(SimulatedGpus pipe, double seconds) {
  double best = 0;
  pipe.until = 15 + seconds;
  for (const auto& split : gpu_splits_of(pipe)) {
    pipe.split = split;
    best = std::max(best, pipe.run().rate(15, pipe.until));
  }
  return best;
}

/// Of a load before and after the bottleneck moves.
struct BestSplits {
  double before, after;
};
inline BestSplits best_splits(const GpuLoad& load, double seconds = 20) {
  return {best_gpu_split(gpus_pipe_of(load, 1 << 30, 0), seconds),
          best_gpu_split(gpus_pipe_of(load, 0, 1 << 30), seconds)};
}

/// The stage with most work, and all work of an item of the first.
inline std::pair<std::size_t, double> bottleneck(const GpuLoad& load,
                                                 const std::vector<double>& seconds) {
  double each = 1, all = 0, most = 0;
  std::size_t found = 0;
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    if (each * seconds[s] > most) most = each * seconds[s], found = s;
    all += each * seconds[s];
    each *= load.fan_out[s];
  }
  return {found, all};
}

struct Followed {
  double before, after;            ///< rates, of the best split's
  double meanwhile;                ///< likewise, in the first 7 s after the move
  double busy_before, busy_after;  ///< the bottleneck's GPUs
  int loads = 0;                   ///< in the last 40 s of either phase
  bool memory_kept = true;
};

/// From 25 s on, by when all stages are loaded; and from 5 s and a load after the new bottleneck
/// has begun its first item of the new load.
inline Followed follow(const GpuLoad& load, const BestSplits& best) {
  const auto gpus = static_cast<double>(gpus_pipe_of(load, 1, 1).gpus.size());
  const auto [old_stage, old_work] = bottleneck(load, load.before);
  const auto [stage, work] = bottleneck(load, load.after);
  const auto first = static_cast<std::int64_t>(80 * gpus / old_work);
  const auto run = gpus_pipe_of(load, first, static_cast<std::int64_t>(200 * gpus / work)).run();
  double begun = 0, ended = 0;
  for (const SimulatedGpus::Span& item : run.items) {
    if (begun == 0 && item.stage == stage && item.source >= first) begun = item.from;
    if (item.stage == old_stage && item.source < first) ended = std::max(ended, item.to);
  }
  const double moved = std::max(begun, ended), from = moved + 5 + 2;
  const auto busiest = [&](double since, double until) {
    double most = 0;
    for (std::size_t s = 0; s < load.fan_out.size(); ++s)
      most = std::max(most, run.share_busy(s, since, until));
    return most;
  };
  Followed result;
  result.before = run.rate(25, std::min(begun, ended)) / best.before;
  result.meanwhile = run.rate(moved, from) / best.after;
  result.after = run.rate(from, from + 40) / best.after;
  result.busy_before = busiest(25, std::min(begun, ended));
  result.busy_after = busiest(from, from + 40);
  for (const SimulatedGpus::Span& model : run.models)
    if ((model.from > 27 && model.from < moved) ||
        (model.from > from + 2 && model.from < from + 40))
      ++result.loads;
  result.memory_kept = run.memory_kept;
  return result;
}

/// Where results pile up before slower stages, as many as there are: the rates, of the best split's
/// where few wait, of a load that stays as it is before the move, and of one that is as after it,
/// in the 40 s from the 25th on.
struct PiledUp {
  double before, after;
  bool memory_kept;
};
inline PiledUp pile_up(GpuLoad load, const BestSplits& best) {
  load.results = std::size_t{1} << 20;
  const auto run = [&](std::int64_t first, std::int64_t then) {
    SimulatedGpus pipe = gpus_pipe_of(load, first, then);
    pipe.until = 65;
    return pipe.run();
  };
  const auto before = run(1 << 30, 0), after = run(0, 1 << 30);
  return {before.rate(25, 65) / best.before, after.rate(25, 65) / best.after,
          before.memory_kept && after.memory_kept};
}

}  // namespace vfm
