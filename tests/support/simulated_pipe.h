// A pipe of programs that share slots, or have some each, in virtual time: exact, and without a
// clock.
//
// Each program does what share/ordered.h does: its threads take items from the pipe in order, wait
// for a slot, work, and hand the results on in order, so many records an item; 2 * threads items
// are there at a time, or as many as their results' weight allows, and a full pipe stops who writes
// to it. The last one's records are counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "share/slot_rule.h"
#include "support/simulated_stages.h"

namespace vfm {

struct SimulatedPipe {
  struct Stage {
    int fan_out = 1;  ///< records that an item becomes
    /// Of the stage's item `number`, which comes from the first stage's item `source`.
    std::function<double(std::int64_t number, std::int64_t source)> seconds;
  };
  using Rule = std::function<int(std::span<const share::SlotClaim>)>;

  std::vector<Stage> stages;
  std::int64_t items = 0;  ///< of the first stage
  int slots = 16;
  std::size_t pipe_records = 64;  ///< that a pipe between two stages takes
  std::size_t results = 4096;  ///< that wait in a program: more than 2 * threads as they are small
  std::vector<int> split;      ///< slots of each stage; none: all share `slots`
  Rule rule = share::next_claim;
  struct Result : SimulatedTimes {
    std::vector<std::int64_t> sources;  ///< of each of them
    std::size_t most_waiting = 0;       ///< records in all pipes
    double busy = 0;                    ///< seconds of all items
  };
  Result run() const;
};

namespace simulation {

struct Running {
  double end;
  std::size_t stage;
  std::int64_t number;
  bool operator>(const Running& other) const { return end > other.end; }
};

class Run {
 public:
  explicit Run(const SimulatedPipe& pipe) : pipe_(pipe), states_(pipe.stages.size()) {
    for (std::size_t s = 0; s < states_.size(); ++s) {
      states_[s].fan_out = pipe.stages[s].fan_out;
      states_[s].threads = pipe.split.empty() ? pipe.slots : pipe.split[s];
      states_[s].most = std::max(pipe.results, 2 * static_cast<std::size_t>(states_[s].threads));
    }
  }

  SimulatedPipe::Result run() {
    const auto come = [this](std::int64_t source) {
      result_.times.push_back(now_);
      result_.sources.push_back(source);
    };
    for (;;) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (std::size_t s = 0; s < states_.size(); ++s)
          moved = move_on(states_, s, pipe_.pipe_records, pipe_.items, come) || moved;
        moved = begin_items() || moved;
        note_waiting();
      }
      if (running_.empty()) return result_;
      const Running ended = running_.top();
      running_.pop();
      now_ = ended.end;
      states_[ended.stage].end(ended.number);
    }
  }

 private:
  bool begin_items() {
    bool moved = false;
    for (;;) {
      int chosen = -1, held = 0;
      claims_.clear();
      for (std::size_t s = 0; s < states_.size(); ++s) {
        const Program& stage = states_[s];
        held += stage.running;
        claims_.push_back({static_cast<int>(s), stage.running, stage.threads, stage.waiting, 0});
        if (!pipe_.split.empty() && stage.waiting > 0 && stage.running < stage.threads)
          chosen = static_cast<int>(s);
      }
      if (pipe_.split.empty() && held < pipe_.slots) chosen = pipe_.rule(claims_);
      if (chosen < 0) return moved;
      begin(static_cast<std::size_t>(chosen));
      moved = true;
    }
  }

  void begin(std::size_t s) {
    const Item& item = states_[s].begin();
    const double seconds = pipe_.stages[s].seconds(item.number, item.source);
    result_.busy += seconds;
    running_.push({now_ + seconds, s, item.number});
  }

  void note_waiting() {
    std::size_t all = 0;
    for (const Program& stage : states_)
      all += stage.input.size();
    result_.most_waiting = std::max(result_.most_waiting, all);
  }

  const SimulatedPipe& pipe_;
  std::vector<Program> states_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<share::SlotClaim> claims_;
  double now_ = 0;
  SimulatedPipe::Result result_;
};

}  // namespace simulation

inline SimulatedPipe::Result SimulatedPipe::run() const {
  return simulation::Run(*this).run();
}

/// All ways to give `slots` to three stages, at least one to each.
inline std::vector<std::vector<int>> splits_of(int slots) {
  std::vector<std::vector<int>> all;
  for (int a = 1; a <= slots - 2; ++a)
    for (int b = 1; a + b < slots; ++b)
      all.push_back({a, b, slots - a - b});
  return all;
}

}  // namespace vfm
