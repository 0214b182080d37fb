// What simulated_pipe.h and simulated_gpus.h have in common: programs of a pipe in virtual time,
// each of which takes items in order and hands their results on in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace vfm {

/// When the last stage's records came.
struct SimulatedTimes {
  std::vector<double> times;
  double end() const { return times.empty() ? 0 : times.back(); }
  /// Records a second in [from, to).
  double rate(double from, double to) const {
    const auto in = [&](double t) { return std::lower_bound(times.begin(), times.end(), t); };
    return static_cast<double>(in(to)-in(from)) / (to - from);
  }
};

namespace simulation {

struct Item {
  std::int64_t number, source;  // of the stage; the first stage's that it comes from
  enum { waits, runs, ready } state = waits;
};

/// One program.
struct Program {
  int threads = 0, fan_out = 1;
  std::size_t most = 0;  // items that are there at a time
  int waiting = 0, running = 0;
  std::size_t ready = 0;  // of the first items
  std::int64_t were_ready = 0, handed = 0;
  std::int64_t taken = 0;
  std::deque<std::int64_t> input;  // the source of each record
  std::deque<Item> window;
  int writing = 0;  // records of the item that is handed on
  std::int64_t writing_source = 0;

  /// The first item that waits runs from now on.
  const Item& begin() {
    Item& first = *std::find_if(window.begin(), window.end(),
                                [](const Item& item) { return item.state == Item::waits; });
    first.state = Item::runs;
    --waiting, ++running;
    return first;
  }
  void end(std::int64_t number) {
    window[static_cast<std::size_t>(number - window.front().number)].state = Item::ready;
    --running;
    for (; ready < window.size() && window[ready].state == Item::ready; ++ready)
      ++were_ready;
  }

  /// Takes as many items as it may; from `input`, or, the first one, of so many. Whether it did.
  bool take(bool first, std::int64_t items) {
    bool moved = false;
    while (waiting + running < threads && window.size() < most) {
      std::int64_t source = taken;
      if (first ? taken == items : input.empty()) return moved;
      if (!first) {
        source = input.front();
        input.pop_front();
      }
      window.push_back({taken++, source});
      ++waiting;
      moved = true;
    }
    return moved;
  }

  /// Hands on what is ready. `give`: a record with that source; false: there is no room for it.
  bool hand_on(const std::function<bool(std::int64_t source)>& give) {
    bool moved = false;
    for (;;) {
      for (; writing > 0; --writing, moved = true) {
        if (!give(writing_source)) return moved;
        if (writing == 1) ++handed;
      }
      if (window.empty() || window.front().state != Item::ready) return moved;
      writing = fan_out;
      writing_source = window.front().source;
      window.pop_front();
      --ready;
      moved = true;
    }
  }
};

/// One of `programs` hands on to the next one, or, the last one, to `come`; or else takes items.
/// Whether it did.
template <class State>
bool move_on(std::vector<State>& programs, std::size_t stage, std::size_t pipe_records,
             std::int64_t items, const std::function<void(std::int64_t source)>& come) {
  const auto give = [&](std::int64_t source) {
    if (stage + 1 == programs.size()) {
      come(source);
      return true;
    }
    std::deque<std::int64_t>& pipe = programs[stage + 1].input;
    if (pipe.size() >= pipe_records) return false;
    pipe.push_back(source);
    return true;
  };
  return programs[stage].hand_on(give) || programs[stage].take(stage == 0, items);
}

}  // namespace simulation
}  // namespace vfm
