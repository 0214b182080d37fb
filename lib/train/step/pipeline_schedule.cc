// SPDX-License-Identifier: Apache-2.0
#include "train/step/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/philox.h"

namespace vfm::train {
namespace {

using Action = PipelineStep::Kind;

/// A chunk's forward or backward of the microbatch that is at a place of the order.
struct Task {
  int rank = 0, chunk = 0;
  std::size_t place = 0;
  bool backward = false;
  std::size_t needs = kNothing;  ///< the task before it in its microbatch
  static constexpr std::size_t kNothing = ~std::size_t{0};
};

/// Those of a rank, in its order. With vpp > 1 as if pp divided the microbatches; those that are
/// not there are left out.
std::vector<Task> tasks_of_rank(const PipelineShape& shape, std::size_t microbatches, int rank) {
  const auto pp = static_cast<std::size_t>(shape.pp), vpp = static_cast<std::size_t>(shape.vpp);
  const std::size_t turn = vpp == 1 ? 1 : pp;
  const std::size_t rounded = (microbatches + turn - 1) / turn * turn, all = rounded * vpp;
  const std::size_t after = pp - static_cast<std::size_t>(rank) - 1;
  const std::size_t lead =
      vpp == 1 ? after * (1 + static_cast<std::size_t>(shape.ahead)) : 2 * after + (vpp - 1) * pp;
  const std::size_t ahead = std::min(all, lead);
  std::vector<Task> tasks;
  const auto add = [&](std::size_t number, bool backward) {
    const std::size_t chunk = number / turn % vpp;
    const std::size_t place = number / (turn * vpp) * turn + number % turn;
    if (place < microbatches)
      tasks.push_back(
          {rank, static_cast<int>(backward ? vpp - 1 - chunk : chunk), place, backward});
  };
  for (std::size_t i = 0; i < all + ahead; ++i) {
    if (i < all) add(i, false);
    if (i >= ahead) add(i - ahead, true);
  }
  return tasks;
}

/// The tasks of all ranks, each after the one that it needs and after those before it on its rank.
class TaskOrder {
 public:
  TaskOrder(const PipelineShape& shape, std::size_t microbatches) : shape_(shape) {
    std::vector<std::vector<Task>> ranks;
    for (int rank = 0; rank < shape.pp; ++rank)
      ranks.push_back(tasks_of_rank(shape, microbatches, rank));
    std::vector<std::size_t> next(ranks.size(), 0);
    // By chunk of the network, forward and backward after one another, and microbatch.
    std::vector<std::size_t> number(2 * static_cast<std::size_t>(shape.chunks()) * microbatches,
                                    Task::kNothing);
    for (std::size_t before = 1; before > 0;) {
      before = tasks_.size();
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (; next[rank] < ranks[rank].size(); ++next[rank]) {
          Task task = ranks[rank][next[rank]];
          const std::size_t stage = stage_of(task);
          if (stage > 0) {
            task.needs = number[(stage - 1) * microbatches + task.place];
            if (task.needs == Task::kNothing) break;
          }
          number[stage * microbatches + task.place] = tasks_.size();
          tasks_.push_back(task);
        }
      before = tasks_.size() - before;
    }
    if (tasks_.size() != number.size()) fail("a pipeline whose ranks wait for each other");
  }

  const std::vector<Task>& tasks() const { return tasks_; }

  /// When each begins and ends, of microbatches that cost `costs` in the order `order`. Returns the
  /// end of all.
  double run(std::span<const MicrobatchCost> costs, std::span<const std::size_t> order,
             std::vector<double>& begins, std::vector<double>& ends) const {
    std::vector<double> free(static_cast<std::size_t>(shape_.pp), 0);
    begins.resize(tasks_.size());
    ends.resize(tasks_.size());
    double last = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const Task& task = tasks_[i];
      const MicrobatchCost& cost = costs[order[task.place]];
      double& at = free[static_cast<std::size_t>(task.rank)];
      begins[i] = task.needs == Task::kNothing ? at : std::max(at, ends[task.needs]);
      at = ends[i] = begins[i] + (task.backward ? cost.backward : cost.forward) / shape_.vpp;
      last = std::max(last, at);
    }
    return last;
  }

 private:
  /// The number of a task in its microbatch: forward through all chunks, and back.
  std::size_t stage_of(const Task& task) const {
    const int chunk = task.chunk * shape_.pp + task.rank;
    return static_cast<std::size_t>(task.backward ? 2 * shape_.chunks() - 1 - chunk : chunk);
  }

  const PipelineShape shape_;
  std::vector<Task> tasks_;
};

void check(const PipelineShape& shape, std::span<const MicrobatchCost> costs) {
  if (shape.pp < 1 || shape.vpp < 1 || shape.ahead < 0 || costs.empty())
    fail("a pipeline of {} ranks with {} chunks each, {} microbatches and {} ahead", shape.pp,
         shape.vpp, costs.size(), shape.ahead);
  for (const MicrobatchCost& cost : costs)
    if (!(cost.forward >= 0 && cost.backward >= 0 && std::isfinite(cost.forward + cost.backward)))
      fail("a microbatch that costs {} and {}", cost.forward, cost.backward);
}

/// The lists of all ranks: a message stands where what it carries is made, in both lists.
PipelineSchedule list_steps(const PipelineShape& shape, const TaskOrder& made,
                            std::span<const MicrobatchCost> costs, std::vector<std::size_t> order) {
  PipelineSchedule schedule;
  std::vector<double> begins, ends;
  schedule.makespan = made.run(costs, order, begins, ends);
  struct Event {
    double time;
    std::size_t task;
    bool message;  // of the task, to the one that needs it
  };
  std::vector<Event> events;
  std::vector<const Task*> receiver(made.tasks().size(), nullptr);
  for (std::size_t i = 0; i < made.tasks().size(); ++i) {
    const Task& task = made.tasks()[i];
    events.push_back({begins[i], i, false});
    if (task.needs != Task::kNothing && made.tasks()[task.needs].rank != task.rank)
      receiver[task.needs] = &task;
  }
  for (std::size_t i = 0; i < receiver.size(); ++i)
    if (receiver[i] != nullptr) events.push_back({ends[i], i, true});
  // Of two at one time the one whose task came first in an order that is possible.
  std::ranges::sort(events, {}, [](const Event& event) {
    return std::tuple(event.time, event.task, event.message);
  });
  schedule.ranks.resize(static_cast<std::size_t>(shape.pp));
  const auto list = [&](int rank) -> std::vector<PipelineStep>& {
    return schedule.ranks[static_cast<std::size_t>(rank)];
  };
  for (const Event& event : events) {
    const Task& task = made.tasks()[event.task];
    const std::size_t microbatch = order[task.place];
    if (!event.message) {
      list(task.rank).push_back(
          {task.backward ? Action::backward : Action::forward, task.chunk, microbatch});
      continue;
    }
    const Task& to = *receiver[event.task];
    list(task.rank).push_back({task.backward ? Action::send_gradient : Action::send_stream,
                               task.chunk, microbatch, to.rank});
    list(to.rank).push_back({task.backward ? Action::receive_gradient : Action::receive_stream,
                             to.chunk, microbatch, task.rank});
  }
  schedule.order = std::move(order);
  return schedule;
}

std::vector<std::size_t> given_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// Finds a better order step by step.
class OrderSearch {
 public:
  OrderSearch(const TaskOrder& made, std::span<const MicrobatchCost> costs)
      : made_(made), costs_(costs), best_(given_order(costs.size())), least_(time(best_)) {}

  std::vector<std::size_t> find() {
    if (std::ranges::all_of(costs_, [&](const MicrobatchCost& cost) {
          return cost.forward == costs_[0].forward && cost.backward == costs_[0].backward;
        }))
      return best_;
    // Small ones at both ends: while a pipeline fills and drains others wait for them.
    std::vector<std::size_t> sorted = best_;
    std::ranges::stable_sort(sorted, {}, [&](std::size_t i) { return all(costs_[i]); });
    std::vector<std::size_t> hill(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      hill[i % 2 == 0 ? i / 2 : hill.size() - 1 - i / 2] = sorted[i];
    offer(sorted);
    offer({sorted.rbegin(), sorted.rend()});
    offer(hill);
    offer({hill.rbegin(), hill.rend()});
    // Swaps, and moves to another place.
    const Random random(0, Purpose::data_order, 0, random_key("microbatches"));
    const auto draw = [&](std::size_t i) { return random.bits(i) % best_.size(); };
    const std::size_t tries = std::clamp(kWork / made_.tasks().size(), kLeast, kMost);
    for (std::size_t i = 0; i < tries; ++i) {
      const std::size_t a = draw(3 * i), b = draw(3 * i + 1);
      std::vector<std::size_t> order = best_;
      if (random.bits(3 * i + 2) % 2 == 0) {
        std::swap(order[a], order[b]);
      } else {
        const std::size_t moved = order[a];
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(a));
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(b), moved);
      }
      offer(order);
    }
    return best_;
  }

 private:
  static constexpr std::size_t kWork = 4'000'000, kLeast = 64, kMost = 2000;
  static constexpr double kBetter = 1e-9;  // more than sums of other orders differ by rounding

  static double all(const MicrobatchCost& cost) { return cost.forward + cost.backward; }
  double time(std::span<const std::size_t> order) {
    return made_.run(costs_, order, begins_, ends_);
  }
  void offer(const std::vector<std::size_t>& order) {
    const double t = time(order);
    if (t < least_ * (1 - kBetter)) least_ = t, best_ = order;
  }

  const TaskOrder& made_;
  const std::span<const MicrobatchCost> costs_;
  std::vector<double> begins_, ends_;
  std::vector<std::size_t> best_;
  double least_;
};

}  // namespace

PipelineSchedule schedule_in_order(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs) {
  check(shape, costs);
  return list_steps(shape, TaskOrder(shape, costs.size()), costs, given_order(costs.size()));
}

PipelineSchedule schedule_pipeline(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs) {
  check(shape, costs);
  const TaskOrder made(shape, costs.size());
  return list_steps(shape, made, costs, OrderSearch(made, costs).find());
}

}  // namespace vfm::train
