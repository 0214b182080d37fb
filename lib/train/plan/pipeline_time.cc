// SPDX-License-Identifier: Apache-2.0
#include "train/plan/pipeline_time.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace vfm::train {
namespace {

using Action = PipelineStep::Kind;

/// The ranks of a pipeline, each at some step of its list.
class RunningRanks {
 public:
  RunningRanks(const PipelineSchedule& schedule, const PipelineShape& shape,
               const StageSeconds& stages, std::span<const double> costs)
      : schedule_(schedule), shape_(shape), stages_(stages), costs_(costs) {}

  double run() {
    const std::size_t ranks = schedule_.ranks.size();
    std::vector<std::size_t> at(ranks, 0);
    clock_.assign(ranks, 0);
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (; at[rank] < schedule_.ranks[rank].size(); ++at[rank], any = true)
          if (!act(rank, schedule_.ranks[rank][at[rank]])) break;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (at[rank] < schedule_.ranks[rank].size()) fail("ranks of a pipeline wait for each other");
    return *std::ranges::max_element(clock_);
  }

 private:
  /// Of the network: chunk, microbatch, and whether it is on the way back.
  using Place = std::tuple<int, std::size_t, bool>;

  /// False: what it needs is not there yet.
  bool act(std::size_t rank, const PipelineStep& step) {
    const int chunk = step.chunk * shape_.pp + static_cast<int>(rank), last = shape_.chunks() - 1;
    const bool backward = step.kind == Action::backward;
    if (step.kind != Action::forward && !backward) {
      if (step.kind == Action::send_stream) arrives(rank, {chunk, step.microbatch, false}, chunk);
      if (step.kind == Action::send_gradient)
        arrives(rank, {chunk, step.microbatch, true}, chunk - 1);
      return true;
    }
    double begin = clock_[rank];
    const int before = backward ? chunk + 1 : chunk - 1;
    // A chunk whose neighbour is on this rank has that before it in the list.
    if (before >= 0 && before <= last && shape_.pp > 1) {
      const auto found = arrival_.find({before, step.microbatch, backward});
      if (found == arrival_.end()) return false;
      begin = std::max(begin, found->second);
    }
    const double each = (backward ? stages_.backward : stages_.forward)[rank] / shape_.vpp;
    clock_[rank] = begin + each * costs_[step.microbatch];
    return true;
  }

  /// What is sent now, over the boundary after that chunk.
  void arrives(std::size_t rank, const Place& place, int boundary) {
    arrival_[place] =
        clock_[rank] +
        (stages_.messages.empty() ? 0 : stages_.messages.at(static_cast<std::size_t>(boundary)));
  }

  const PipelineSchedule& schedule_;
  const PipelineShape& shape_;
  const StageSeconds& stages_;
  const std::span<const double> costs_;
  std::vector<double> clock_;
  std::map<Place, double> arrival_;
};

double of_equal(const PipelineShape& shape, const StageSeconds& stages, int microbatches) {
  const std::vector<MicrobatchCost> costs(static_cast<std::size_t>(microbatches));
  const std::vector<double> ones(costs.size(), 1);
  return run_schedule(schedule_in_order(shape, costs), shape, stages, ones);
}

}  // namespace

double run_schedule(const PipelineSchedule& schedule, const PipelineShape& shape,
                    const StageSeconds& stages, std::span<const double> costs) {
  return RunningRanks(schedule, shape, stages, costs).run();
}

double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages, int microbatches) {
  // A short last turn stays one.
  const int pp = shape.pp, few = 3 * pp * (1 + shape.ahead) + microbatches % pp;
  if (microbatches <= few + pp) return of_equal(shape, stages, microbatches);
  const double shorter = of_equal(shape, stages, few),
               turn = of_equal(shape, stages, few + pp) - shorter;
  return shorter + turn * (microbatches - few) / pp;
}

double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages,
                        std::span<const double> costs) {
  std::vector<MicrobatchCost> both;
  for (const double cost : costs)
    both.push_back({cost / 3, 2 * cost / 3});
  return run_schedule(schedule_pipeline(shape, both), shape, stages, costs);
}

}  // namespace vfm::train
