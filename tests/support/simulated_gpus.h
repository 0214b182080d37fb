// A pipe of programs that borrow GPUs from one another, or have some each, in virtual time: exact,
// and without a clock.
//
// As simulated_pipe.h, with GPUs in the place of slots. Each program's threads take items in
// order, wait for a GPU on which the program's model is loaded, have it for the item, and hand
// results on in order; at most 2 * threads results wait, or as many as are said, and a full pipe
// stops who writes to it.
// Models are loaded and unloaded as share/gpu_rule.h says, by what share/gpu_averages.h has seen,
// looked at four times a second as by share/gpu_board.h; loads take their time, in which other
// models of the GPU go on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "share/gpu_averages.h"
#include "share/gpu_rule.h"
#include "support/simulated_stages.h"

namespace vfm {

struct SimulatedGpus {
  struct Stage {
    int fan_out = 1;  ///< records that an item becomes
    /// Of the stage's item `number`, from the first stage's item `source`.
    std::function<double(std::int64_t number, std::int64_t source)> seconds;
    std::int64_t memory = 1;
    double load_seconds = 2;
    int threads = 16;
    std::size_t results = 0;  ///< that are there at a time, with items under way; 0: as above
  };
  struct SharedGpu {
    std::int64_t memory = 1;
  };

  std::vector<Stage> stages;
  std::vector<SharedGpu> gpus = std::vector<SharedGpu>(8);
  std::int64_t items = 0;         ///< of the first stage
  std::size_t pipe_records = 64;  ///< that a pipe between two stages takes
  double unload_seconds = 0.1;
  std::vector<share::GpuSet>
      split;  ///< of each stage, loaded from the begin; none: the rule decides
  double until = 1e9;

  /// A model on a GPU, or an item.
  struct Span {
    std::size_t stage, gpu;
    double from, to;
    std::int64_t source = 0;
  };
  struct Result : SimulatedTimes {
    std::vector<Span> models;  ///< from when they are loaded until they begin to unload
    std::vector<Span> items;
    bool memory_kept = true;  ///< by each plan, and at each load
    int loads() const { return static_cast<int>(models.size()); }
    /// Of the time in [from, to) that GPUs have a stage's model: the share in which they have an
    /// item, of whichever stage.
    double share_busy(std::size_t stage, double from, double to) const;
  };
  Result run() const;
};

namespace simulation {

struct Event {
  double at;
  enum { item, load, unload, look } what;
  std::size_t stage = 0, gpu = 0;
  std::int64_t number = 0;
  bool operator>(const Event& other) const { return at > other.at; }
};

struct GpuProgram : Program {
  share::GpuSet loading = 0, loaded = 0, unloading = 0, on = 0, wanted = 0;
  share::GpuCounts counts;
  share::GpuAverages averages;
  double since[share::kMostGpus] = {}, waits_since = 0, idle_since = 0, had_gpu = -1;
};

class GpuRun {
 public:
  explicit GpuRun(const SimulatedGpus& pipe) : pipe_(pipe), states_(pipe.stages.size()) {
    for (const SimulatedGpus::SharedGpu& gpu : pipe.gpus)
      places_.push_back({gpu.memory, 1});
    for (std::size_t s = 0; s < states_.size(); ++s) {
      states_[s].fan_out = pipe.stages[s].fan_out;
      states_[s].threads = pipe.stages[s].threads;
      const auto few = 2 * static_cast<std::size_t>(states_[s].threads);
      states_[s].most = std::max(few, pipe.stages[s].results);
    }
    for (std::size_t s = 0; s < pipe.split.size(); ++s) {
      states_[s].loaded = states_[s].wanted = pipe.split[s];
      for (std::size_t c = 0; c < places_.size(); ++c)
        if (has(pipe.split[s], c)) add_model(s, c);
    }
    if (pipe.split.empty()) events_.push({kLook, Event::look});
  }

  SimulatedGpus::Result run() {
    for (;;) {
      move();
      if (done() || events_.empty() || events_.top().at > pipe_.until) return result_;
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      happen(event);
    }
  }

 private:
  static constexpr double kLook = 0.25;
  static bool has(share::GpuSet set, std::size_t gpu) { return (set >> gpu & 1) != 0; }

  bool done() const {
    return states_[0].taken == pipe_.items &&
           std::all_of(states_.begin(), states_.end(), [](const GpuProgram& s) {
             return s.window.empty() && s.input.empty() && s.writing == 0;
           });
  }

  void move() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < states_.size(); ++s)
        moved = move_on(s) || moved;
      moved = begin_items() || moved;
    }
    if (!pipe_.split.empty()) return;
    for (std::size_t s = 0; s < states_.size(); ++s)
      for (std::size_t c = 0; c < places_.size(); ++c)
        load_or_unload(s, c);
  }

  void happen(const Event& event) {
    GpuProgram& stage = states_[event.stage];
    const share::GpuSet bit = share::gpu_bit(static_cast<int>(event.gpu));
    if (event.what == Event::item) {
      stage.end(event.number);
      stage.on &= ~bit;
      stage.counts.busy[event.gpu] += now_ - stage.since[event.gpu];
      stage.counts.items[event.gpu] += 1;
      stage.counts.count_length(now_ - stage.since[event.gpu]);
      stage.idle_since = now_;
    } else if (event.what == Event::load) {
      stage.loading &= ~bit;
      stage.loaded |= bit;
      if (stage.had_gpu < 0) stage.had_gpu = now_;
      add_model(event.stage, event.gpu);
      settled_ = now_ + kSettle;
    } else if (event.what == Event::unload) {
      stage.unloading &= ~bit;
    } else {
      look();
      events_.push({now_ + kLook, Event::look});
    }
  }

  void look() {
    std::vector<share::GpuStage> stages;
    std::vector<const share::GpuAverages*> averages;
    bool starved = false;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      GpuProgram& stage = states_[s];
      share::GpuCounts counts = stage.counts;
      for (std::size_t c = 0; c < places_.size(); ++c)
        if (has(stage.on, c)) counts.busy[c] += now_ - stage.since[c];
      if (stage.waiting > 0) counts.short_of += now_ - stage.waits_since;
      counts.ready = static_cast<double>(stage.were_ready);
      counts.handed = static_cast<double>(stage.handed);
      stage.averages.add(counts, kLook);
      averages.push_back(&stage.averages);
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const GpuProgram& stage = states_[s];
      share::GpuStage& out = stages.emplace_back();
      out.place = static_cast<int>(s);
      out.next = s + 1 < states_.size() ? static_cast<int>(s) + 1 : -1;
      out.memory = pipe_.stages[s].memory;
      out.waiting = stage.waiting;
      out.known = stage.had_gpu >= 0;
      out.idle = stage.running > 0 || stage.waiting > 0 ? 0 : now_ - stage.idle_since;
      out.load_seconds = pipe_.stages[s].load_seconds;
      out.may = share::gpu_bit(static_cast<int>(places_.size())) - 1;
      out.loaded = (stage.loaded | stage.loading) & stage.wanted;
      out.fixed = stage.loading & stage.wanted;
      starved = starved || (stage.waiting > 0 && stage.wanted == 0);
    }
    if (now_ < settled_ && !starved) return;
    const auto wanted = share::plan_by_averages(stages, averages, places_, now_ - settled_);
    for (std::size_t s = 0; s < states_.size(); ++s)
      states_[s].wanted = wanted[s];
    for (std::size_t c = 0; c < places_.size(); ++c)
      if (memory_of(c, [&](const GpuProgram& stage) { return stage.wanted; }) >
          pipe_.gpus[c].memory)
        result_.memory_kept = false;
  }

  void load_or_unload(std::size_t s, std::size_t c) {
    GpuProgram& stage = states_[s];
    const share::GpuSet bit = share::gpu_bit(static_cast<int>(c));
    if ((stage.loaded & ~stage.on & ~stage.wanted & bit) != 0) {
      stage.loaded &= ~bit;
      stage.unloading |= bit;
      for (SimulatedGpus::Span& model : result_.models)
        if (model.stage == s && model.gpu == c && model.to > now_) model.to = now_;
      events_.push({now_ + pipe_.unload_seconds, Event::unload, s, c});
    }
    const share::GpuSet all = stage.loading | stage.loaded | stage.unloading;
    if ((stage.wanted & ~all & bit) == 0 || stage.waiting == 0) return;
    const std::int64_t used = memory_of(
        c, [](const GpuProgram& state) { return state.loading | state.loaded | state.unloading; });
    if (used + pipe_.stages[s].memory > pipe_.gpus[c].memory) return;
    stage.loading |= bit;
    events_.push({now_ + pipe_.stages[s].load_seconds, Event::load, s, c});
  }

  template <class Which>
  std::int64_t memory_of(std::size_t gpu, Which which) const {
    std::int64_t memory = 0;
    for (std::size_t s = 0; s < states_.size(); ++s)
      if (has(which(states_[s]), gpu)) memory += pipe_.stages[s].memory;
    return memory;
  }

  void add_model(std::size_t stage, std::size_t gpu) {
    result_.models.push_back({stage, gpu, now_, 1e12});
  }

  bool move_on(std::size_t s) {
    const bool waited = states_[s].waiting > 0;
    const bool moved = simulation::move_on(states_, s, pipe_.pipe_records, pipe_.items,
                                           [this](auto) { result_.times.push_back(now_); });
    if (!waited && states_[s].waiting > 0) states_[s].waits_since = now_;
    return moved;
  }

  bool begin_items() {
    bool moved = false;
    share::GpuSet free = share::gpu_bit(static_cast<int>(places_.size())) - 1;
    for (const GpuProgram& stage : states_)
      free &= ~stage.on;
    for (std::size_t s = states_.size(); s-- > 0;) {
      while (states_[s].waiting > 0) {
        std::vector<share::GpuClaim> claims;
        for (std::size_t i = 0; i < states_.size(); ++i)
          claims.push_back(
              {static_cast<int>(i), states_[i].waiting, states_[i].loaded & states_[i].wanted});
        const int gpu = share::gpu_for_item(claims, s, free, places_);
        if (gpu < 0) break;
        free &= ~share::gpu_bit(gpu);
        begin(s, static_cast<std::size_t>(gpu));
        moved = true;
      }
    }
    return moved;
  }

  void begin(std::size_t s, std::size_t gpu) {
    GpuProgram& stage = states_[s];
    const Item& item = stage.begin();
    if (stage.waiting == 0) stage.counts.short_of += now_ - stage.waits_since;
    stage.on |= share::gpu_bit(static_cast<int>(gpu));
    stage.since[gpu] = now_;
    const double takes = pipe_.stages[s].seconds(item.number, item.source);
    result_.items.push_back({s, gpu, now_, now_ + takes, item.source});
    events_.push({now_ + takes, Event::item, s, gpu, item.number});
  }

  static constexpr double kSettle = 1;
  const SimulatedGpus& pipe_;
  std::vector<GpuProgram> states_;
  std::vector<share::GpuPlace> places_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0, settled_ = 0;
  SimulatedGpus::Result result_;
};

}  // namespace simulation

inline double SimulatedGpus::Result::share_busy(std::size_t stage, double from, double to) const {
  double loaded = 0, busy = 0;
  const auto overlap = [](const Span& a, const Span& b) {
    return std::max(0.0, std::min(a.to, b.to) - std::max(a.from, b.from));
  };
  for (const Span& model : models) {
    if (model.stage != stage) continue;
    const Span there{stage, model.gpu, std::max(model.from, from), std::min(model.to, to)};
    loaded += std::max(0.0, there.to - there.from);
    for (const Span& item : items)
      if (item.gpu == model.gpu) busy += overlap(item, there);
  }
  return loaded > 0 ? busy / loaded : 0;
}

inline SimulatedGpus::Result SimulatedGpus::run() const {
  return simulation::GpuRun(*this).run();
}

}  // namespace vfm
