// A pipe of programs that share slots, or have some each, in virtual time: exact, and without a
// clock.
//
// Each program does what base/ordered.h does: its threads take items from the pipe in order, wait
// for a slot, work, and hand the results on in order, so many records an item; 2 * threads items
// are there at a time, or as many as their results' weight allows, and a full pipe stops who writes
// to it. The last one's records are counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/slot_rule.h"

namespace vfm {

struct SimulatedPipe {
  struct Stage {
    int fan_out = 1;  ///< records that an item becomes
    /// Of the stage's item `number`, which comes from the first stage's item `source`.
    std::function<double(std::int64_t number, std::int64_t source)> seconds;
  };
  using Rule = std::function<int(std::span<const SlotClaim>)>;

  std::vector<Stage> stages;
  std::int64_t items = 0;  ///< of the first stage
  int slots = 16;
  std::size_t pipe_records = 64;  ///< that a pipe between two stages takes
  std::size_t results = 4096;  ///< that wait in a program: more than 2 * threads as they are small
  std::vector<int> split;      ///< slots of each stage; none: all share `slots`
  Rule rule = next_claim;
  struct Result {
    std::vector<double> times;          ///< at which the last stage's records came
    std::vector<std::int64_t> sources;  ///< of each of them
    std::size_t most_waiting = 0;       ///< records in all pipes
    double busy = 0;                    ///< seconds of all items
    double end() const { return times.empty() ? 0 : times.back(); }
    /// Records a second in [from, to).
    double rate(double from, double to) const {
      const auto in = [&](double t) { return std::lower_bound(times.begin(), times.end(), t); };
      return static_cast<double>(in(to)-in(from)) / (to - from);
    }
  };
  Result run() const;
};

namespace simulation {

struct Item {
  std::int64_t number, source;
  enum { waits, runs, ready } state = waits;
};

struct Running {
  double end;
  std::size_t stage;
  std::int64_t number;
  bool operator>(const Running& other) const { return end > other.end; }
};

struct StageState {
  int threads = 0;
  int waiting = 0, running = 0;
  std::int64_t taken = 0;
  std::deque<std::int64_t> input;  // the source of each record
  std::deque<Item> window;
  int writing = 0;  // records of the item that is handed on
  std::int64_t writing_source = 0;
};

class Run {
 public:
  explicit Run(const SimulatedPipe& pipe) : pipe_(pipe), states_(pipe.stages.size()) {
    for (std::size_t s = 0; s < states_.size(); ++s)
      states_[s].threads = pipe.split.empty() ? pipe.slots : pipe.split[s];
  }

  SimulatedPipe::Result run() {
    for (;;) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (std::size_t s = 0; s < states_.size(); ++s)
          moved = hand_on(s) || take(s) || moved;
        moved = begin_items() || moved;
        note_waiting();
      }
      if (running_.empty()) return result_;
      const Running ended = running_.top();
      running_.pop();
      now_ = ended.end;
      StageState& stage = states_[ended.stage];
      --stage.running;
      find(stage, ended.number).state = Item::ready;
    }
  }

 private:
  static Item& find(StageState& stage, std::int64_t number) {
    return stage.window[static_cast<std::size_t>(number - stage.window.front().number)];
  }

  bool hand_on(std::size_t s) {
    StageState& stage = states_[s];
    bool moved = false;
    for (;;) {
      while (stage.writing > 0) {
        if (s + 1 == states_.size()) {
          result_.times.push_back(now_);
          result_.sources.push_back(stage.writing_source);
        } else {
          if (states_[s + 1].input.size() >= pipe_.pipe_records) return moved;
          states_[s + 1].input.push_back(stage.writing_source);
        }
        --stage.writing;
        moved = true;
      }
      if (stage.window.empty() || stage.window.front().state != Item::ready) return moved;
      stage.writing = pipe_.stages[s].fan_out;
      stage.writing_source = stage.window.front().source;
      stage.window.pop_front();
      moved = true;
    }
  }

  bool take(std::size_t s) {
    StageState& stage = states_[s];
    bool moved = false;
    const std::size_t most = std::max(pipe_.results, 2 * static_cast<std::size_t>(stage.threads));
    while (stage.waiting + stage.running < stage.threads && stage.window.size() < most) {
      std::int64_t source = stage.taken;
      if (s == 0 ? stage.taken == pipe_.items : stage.input.empty()) return moved;
      if (s > 0) {
        source = stage.input.front();
        stage.input.pop_front();
      }
      stage.window.push_back({stage.taken++, source});
      ++stage.waiting;
      moved = true;
    }
    return moved;
  }

  bool begin_items() {
    bool moved = false;
    for (;;) {
      int chosen = -1, held = 0;
      claims_.clear();
      for (std::size_t s = 0; s < states_.size(); ++s) {
        const StageState& stage = states_[s];
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
    StageState& stage = states_[s];
    const auto first = std::find_if(stage.window.begin(), stage.window.end(),
                                    [](const Item& item) { return item.state == Item::waits; });
    first->state = Item::runs;
    --stage.waiting, ++stage.running;
    const double seconds = pipe_.stages[s].seconds(first->number, first->source);
    result_.busy += seconds;
    running_.push({now_ + seconds, s, first->number});
  }

  void note_waiting() {
    std::size_t all = 0;
    for (const StageState& stage : states_)
      all += stage.input.size();
    result_.most_waiting = std::max(result_.most_waiting, all);
  }

  const SimulatedPipe& pipe_;
  std::vector<StageState> states_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<SlotClaim> claims_;
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
