// The schedule of a pipeline, by a simulator of its own: ranks that do one thing after the other.
// SPDX-License-Identifier: Apache-2.0
#include "train/step/pipeline_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/philox.h"

namespace {

using vfm::train::MicrobatchCost;
using vfm::train::PipelineSchedule;
using vfm::train::PipelineShape;
using vfm::train::PipelineStep;
using Step = PipelineStep::Kind;

bool is_send(const PipelineStep& step) {
  return step.kind == Step::send_stream || step.kind == Step::send_gradient;
}
bool is_receive(const PipelineStep& step) {
  return step.kind == Step::receive_stream || step.kind == Step::receive_gradient;
}

/// The chunk of the whole network.
int stage_of(const PipelineShape& shape, int rank, const PipelineStep& step) {
  return step.chunk * shape.pp + rank;
}

/// What a step gives, or needs: "after forward of a stage", "gradient of what a stage made".
using Value = std::tuple<bool, int, std::size_t>;  // whether a gradient; stage; microbatch

/// What a rank must have before it can do the step. Nothing: latents, or the loss.
std::vector<Value> needs(const PipelineShape& shape, int rank, const PipelineStep& step) {
  const int stage = stage_of(shape, rank, step), last = shape.chunks() - 1;
  const std::size_t m = step.microbatch;
  switch (step.kind) {
    case Step::forward:
      return stage == 0 ? std::vector<Value>{} : std::vector<Value>{{false, stage - 1, m}};
    case Step::backward:
      return stage == last ? std::vector<Value>{{false, stage, m}}
                           : std::vector<Value>{{false, stage, m}, {true, stage, m}};
    case Step::send_stream:
      return {{false, stage, m}};
    case Step::send_gradient:
      return {{true, stage - 1, m}};
    default:
      return {};
  }
}

/// What a rank has after it.
Value gives(const PipelineShape& shape, int rank, const PipelineStep& step) {
  const int stage = stage_of(shape, rank, step);
  switch (step.kind) {
    case Step::forward:
    case Step::send_stream:
      return {false, stage, step.microbatch};
    case Step::receive_stream:
    case Step::backward:
    case Step::send_gradient:
      return {step.kind != Step::receive_stream, stage - 1, step.microbatch};
    default:
      return {true, stage, step.microbatch};
  }
}

/// Each rank does one step after the other, and a send or receive ends when both ranks are at it.
/// Whether all ends.
bool ends_without_buffers(const PipelineShape& shape, const PipelineSchedule& schedule) {
  std::vector<std::size_t> at(schedule.ranks.size(), 0);
  std::vector<std::set<Value>> has(schedule.ranks.size());
  const auto step_of = [&](int rank) -> const PipelineStep* {
    const auto r = static_cast<std::size_t>(rank);
    return at[r] < schedule.ranks[r].size() ? &schedule.ranks[r][at[r]] : nullptr;
  };
  for (bool going = true; going;) {
    going = false;
    for (int rank = 0; rank < shape.pp; ++rank)
      while (const PipelineStep* step = step_of(rank)) {
        auto& here = has[static_cast<std::size_t>(rank)];
        for (const Value& value : needs(shape, rank, *step))
          if (!here.contains(value)) return false;
        if (is_receive(*step)) break;
        if (is_send(*step)) {
          const PipelineStep* other = step_of(step->peer);
          if (other == nullptr || !is_receive(*other) || other->peer != rank ||
              gives(shape, step->peer, *other) != gives(shape, rank, *step))
            break;
          has[static_cast<std::size_t>(step->peer)].insert(gives(shape, rank, *step));
          ++at[static_cast<std::size_t>(step->peer)];
        } else {
          here.insert(gives(shape, rank, *step));
        }
        ++at[static_cast<std::size_t>(rank)];
        going = true;
      }
  }
  for (int rank = 0; rank < shape.pp; ++rank)
    if (step_of(rank) != nullptr) return false;
  return true;
}

/// When all ends if sends and receives begin where they stand, a message takes no time once both
/// have begun, and who needs it waits.
double simulated(const PipelineShape& shape, const PipelineSchedule& schedule,
                 const std::vector<MicrobatchCost>& costs) {
  struct GradientMessage {
    double sent = -1, awaited = -1;
    double here() const { return std::max(sent, awaited); }
  };
  std::map<std::pair<int, Value>, GradientMessage> messages;  // by receiver
  std::map<std::pair<int, Value>, double> made;
  std::vector<double> now(schedule.ranks.size(), 0);
  std::vector<std::size_t> at(schedule.ranks.size(), 0);
  for (bool going = true; going;) {
    going = false;
    for (int rank = 0; rank < shape.pp; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (; at[r] < schedule.ranks[r].size(); ++at[r], going = true) {
        const PipelineStep& step = schedule.ranks[r][at[r]];
        if (is_send(step)) {
          messages[{step.peer, gives(shape, rank, step)}].sent = now[r];
          continue;
        }
        if (is_receive(step)) {
          messages[{rank, gives(shape, rank, step)}].awaited = now[r];
          continue;
        }
        double begin = now[r];
        bool ready = true;
        for (const Value& value : needs(shape, rank, step)) {
          const auto own = made.find({rank, value});
          const auto message = messages.find({rank, value});
          if (own != made.end())
            begin = std::max(begin, own->second);
          else if (message != messages.end() && message->second.sent >= 0)
            begin = std::max(begin, message->second.here());
          else
            ready = false;
        }
        if (!ready) break;
        const MicrobatchCost& cost = costs[step.microbatch];
        now[r] = begin + (step.kind == Step::forward ? cost.forward : cost.backward) / shape.vpp;
        made[{rank, gives(shape, rank, step)}] = now[r];
      }
    }
  }
  for (std::size_t r = 0; r < at.size(); ++r)
    if (at[r] != schedule.ranks[r].size()) return -1;
  return *std::ranges::max_element(now);
}

/// The most chunks of microbatches whose forward a rank has done, and not the backward.
std::size_t most_in_flight(const std::vector<PipelineStep>& steps) {
  std::size_t now = 0, most = 0;
  for (const PipelineStep& step : steps) {
    if (step.kind == Step::forward) most = std::max(most, ++now);
    if (step.kind == Step::backward) --now;
  }
  return most;
}

template <class Act>
void for_each_shape(const Act& act) {
  for (int pp = 1; pp <= 8; ++pp)
    for (int vpp = 1; vpp <= 4; ++vpp)
      for (std::size_t m = 1; m <= 32; ++m)
        act(PipelineShape{pp, vpp}, m);
  for (const int ahead : {1, 2})
    for (int pp = 1; pp <= 8; ++pp)
      for (std::size_t m = 1; m <= 32; m += 3)
        act(PipelineShape{pp, 1, ahead}, m);
}

/// When all ends if a message takes `late` from when both ranks are at it: each waits for it there,
/// or, beside, who needs it, and receives that follow what is computed begin before it.
double end_of_late(const PipelineShape& shape, const PipelineSchedule& schedule,
                   const MicrobatchCost& cost, double late, bool beside) {
  std::map<std::pair<int, Value>, double> sent, awaited;  // by receiver
  std::vector<double> now(schedule.ranks.size(), 0);
  std::vector<std::size_t> at(schedule.ranks.size(), 0);
  const auto comes = [&](const std::pair<int, Value>& what) {
    return sent.contains(what) && awaited.contains(what)
               ? std::max(sent[what], awaited[what]) + late
               : -1;
  };
  for (std::size_t moved = 1, before = 0; moved != before;) {
    before = moved;
    for (int rank = 0; rank < shape.pp; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (; at[r] < schedule.ranks[r].size(); ++at[r], ++moved) {
        const PipelineStep& step = schedule.ranks[r][at[r]];
        if (is_send(step) || is_receive(step)) {
          const bool sends = is_send(step);
          const std::pair<int, Value> what{sends ? step.peer : rank, gives(shape, rank, step)};
          moved += (sends ? sent : awaited).try_emplace(what, now[r]).second;
          if (beside) continue;
          if (comes(what) < 0) break;
          now[r] = std::max(now[r], comes(what));
          continue;
        }
        for (std::size_t next = at[r] + 1; beside && next < schedule.ranks[r].size(); ++next) {
          const PipelineStep& early = schedule.ranks[r][next];
          if (!is_receive(early)) break;
          moved += awaited.try_emplace({rank, gives(shape, rank, early)}, now[r]).second;
        }
        const int stage = stage_of(shape, rank, step), last = shape.chunks() - 1;
        const bool forward = step.kind == Step::forward;
        if (beside && shape.pp > 1 && (forward ? stage > 0 : stage < last)) {
          const Value value{!forward, forward ? stage - 1 : stage, step.microbatch};
          if (comes({rank, value}) < 0) break;
          now[r] = std::max(now[r], comes({rank, value}));
        }
        now[r] += (forward ? cost.forward : cost.backward) / shape.vpp;
      }
    }
  }
  for (std::size_t r = 0; r < at.size(); ++r)
    REQUIRE(at[r] == schedule.ranks[r].size());
  return *std::ranges::max_element(now);
}

std::vector<MicrobatchCost> unequal(std::size_t m, std::uint64_t seed) {
  const vfm::Random random(seed, vfm::Purpose::test);
  std::vector<MicrobatchCost> costs;
  for (std::size_t i = 0; i < m; ++i) {
    const double length = 0.2 + random.uniform(2 * i), square = random.uniform(2 * i + 1);
    costs.push_back({length + square * length, 2 * length + 2.5 * square * length});
  }
  return costs;
}

}  // namespace

TEST_CASE("a pipeline's ranks do all of a step, in flight no more than they may, and none blocks") {
  for_each_shape([](const PipelineShape& shape, std::size_t m) {
    CAPTURE(shape.pp, shape.vpp, m);
    const std::vector<MicrobatchCost> costs(m, {1, 2});
    const PipelineSchedule schedule = vfm::train::schedule_pipeline(shape, costs);
    REQUIRE(schedule.ranks.size() == static_cast<std::size_t>(shape.pp));
    for (int rank = 0; rank < shape.pp; ++rank) {
      std::set<std::pair<int, std::size_t>> forward, backward;
      for (const PipelineStep& step : schedule.ranks[static_cast<std::size_t>(rank)]) {
        if (step.kind == Step::forward) forward.insert({step.chunk, step.microbatch});
        if (step.kind == Step::backward) backward.insert({step.chunk, step.microbatch});
      }
      REQUIRE(forward.size() == m * static_cast<std::size_t>(shape.vpp));
      REQUIRE(backward == forward);
      const auto after = static_cast<std::size_t>(shape.pp - rank - 1),
                 vpp = static_cast<std::size_t>(shape.vpp), pp = static_cast<std::size_t>(shape.pp);
      REQUIRE(most_in_flight(schedule.ranks[static_cast<std::size_t>(rank)]) <=
              (vpp == 1 ? std::min(m, after * (1 + static_cast<std::size_t>(shape.ahead)) + 1)
                        : std::min(m * vpp, 2 * after + (vpp - 1) * pp + 1)));
    }
    REQUIRE(ends_without_buffers(shape, schedule));
    for (std::size_t i = 0; i < m; ++i)
      REQUIRE(schedule.order[i] == i);
  });
}

TEST_CASE("microbatches of one cost take as long as a pipeline must", "[long]") {
  const std::vector<MicrobatchCost> kinds = {{1, 2}, {1, 1}, {3, 5}};
  for (const MicrobatchCost& cost : kinds)
    for_each_shape([&cost](const PipelineShape& shape, std::size_t m) {
      CAPTURE(shape.pp, shape.vpp, m, cost.forward, cost.backward);
      const std::vector<MicrobatchCost> costs(m, cost);
      const PipelineSchedule schedule = vfm::train::schedule_pipeline(shape, costs);
      const double each = cost.forward + cost.backward, pp = shape.pp, vpp = shape.vpp;
      const auto made = [&](double microbatches) { return (microbatches + (pp - 1) / vpp) * each; };
      const double count = static_cast<double>(m);
      const std::size_t part = m % static_cast<std::size_t>(shape.pp);
      const double time = simulated(shape, schedule, costs);
      REQUIRE(time == Approx(schedule.makespan).epsilon(1e-9));
      if (shape.vpp == 1 || part == 0) {
        REQUIRE(time == Approx(made(count)).epsilon(1e-9));
      } else {
        const double rounded = made(count + pp - static_cast<double>(part));
        REQUIRE(time <= std::min((count + pp - 1) * each, rounded) * (1 + 1e-9));
      }
    });
}

TEST_CASE("a pipeline of unequal microbatches neither blocks nor takes longer than it says",
          "[long]") {
  for_each_shape([](const PipelineShape& shape, std::size_t m) {
    if (m % 5 != 3) return;
    CAPTURE(shape.pp, shape.vpp, m);
    std::vector<MicrobatchCost> costs = unequal(m, m);
    costs[m / 2] = {0, 0};  // could not be read
    const PipelineSchedule schedule = vfm::train::schedule_pipeline(shape, costs);
    REQUIRE(ends_without_buffers(shape, schedule));
    const double time = simulated(shape, schedule, costs);
    REQUIRE(time == Approx(schedule.makespan).epsilon(1e-9));
    REQUIRE(std::set(schedule.order.begin(), schedule.order.end()).size() == m);
  });
}

TEST_CASE("unequal microbatches come in an order that is hardly longer than the best of 1,000",
          "[long]") {
  struct Case {
    PipelineShape shape;
    std::size_t m;
  };
  for (const auto& [shape, m] : std::vector<Case>{{{2, 1}, 4},
                                                  {{2, 1}, 8},
                                                  {{4, 1}, 8},
                                                  {{8, 1}, 8},
                                                  {{8, 1}, 32},
                                                  {{4, 2}, 16},
                                                  {{8, 4}, 32},
                                                  {{3, 3}, 7}})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CAPTURE(shape.pp, shape.vpp, m, seed);
      const std::vector<MicrobatchCost> costs = unequal(m, seed);
      const double found = vfm::train::schedule_pipeline(shape, costs).makespan;
      double best = vfm::train::schedule_in_order(shape, costs).makespan;
      REQUIRE(found <= best * (1 + 1e-9));
      for (std::uint32_t i = 0; i < 1000; ++i) {
        std::vector<MicrobatchCost> other;
        for (const std::uint64_t place :
             vfm::Random(seed, vfm::Purpose::test, i + 1).permutation(m))
          other.push_back(costs[place]);
        best = std::min(best, vfm::train::schedule_in_order(shape, other).makespan);
      }
      REQUIRE(found <= 1.05 * best);
    }
}

TEST_CASE("of late messages a pipeline hides what it can with so few microbatches under way") {
  const MicrobatchCost cost{1, 2};
  // What of the time that late messages take where they are waited for is hidden beside computing.
  const auto hidden = [&](const PipelineShape& shape, std::size_t m, double late) {
    const PipelineSchedule schedule =
        vfm::train::schedule_in_order(shape, std::vector<MicrobatchCost>(m, cost));
    const PipelineSchedule usual =
        vfm::train::schedule_in_order({shape.pp, shape.vpp}, std::vector<MicrobatchCost>(m, cost));
    const double still = usual.makespan, at_once = end_of_late(shape, usual, cost, late, false),
                 beside = end_of_late(shape, schedule, cost, late, true);
    if (shape.vpp == 1 && shape.ahead == 0) {
      // The first rank has pp microbatches at most, each from its forward to its backward there.
      const double pp = shape.pp, each = pp * 3 + 2 * (pp - 1) * late,
                   least = static_cast<double>(m) / pp * each;
      CHECK(beside >= least);
      CHECK(beside <= 1.05 * (least + (pp - 1) * 3));
    }
    UNSCOPED_INFO(still << " still, " << at_once << " at once, " << beside << " beside");
    return 1 - (beside - still) / (at_once - still);
  };
  for (const double late : {0.5, 1.0}) {
    CAPTURE(late);
    CHECK(hidden({2, 1}, 8, late) == Approx(0.5));
    CHECK(hidden({4, 1}, 16, late) < 0.6);
    CHECK(hidden({2, 1, 1}, 8, late) >= 0.8);
    CHECK(hidden({4, 1, 1}, 16, late) >= 0.8);
  }
  CHECK(hidden({2, 2}, 8, 0.5) >= 0.8);  // as long as forward of a chunk
  CHECK(vfm::train::schedule_in_order({2, 1, 1}, std::vector<MicrobatchCost>(8, cost)).makespan ==
        Approx(27));
  CHECK_THROWS_AS(vfm::train::schedule_in_order({2, 1, -1}, std::vector{cost}), vfm::Error);
}

TEST_CASE("a step has one schedule on all ranks") {
  const std::vector<MicrobatchCost> costs = unequal(12, 3);
  const PipelineSchedule one = vfm::train::schedule_pipeline({4, 2}, costs),
                         other = vfm::train::schedule_pipeline({4, 2}, costs);
  REQUIRE(one.order == other.order);
  REQUIRE(one.ranks == other.ranks);
  REQUIRE_THROWS_AS(vfm::train::schedule_pipeline({2, 1}, {}), vfm::Error);
}
