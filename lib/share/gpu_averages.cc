// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_averages.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vfm::share {
namespace {

constexpr double kLeastItems = 3;  // With fewer items, the error is 1.
// A stage's error in standard errors. A larger value would keep models in place for long after the
// bottleneck has moved, which costs more than a load.
constexpr double kSure = 1;
// Results pile up only if more wait than kOnTheWay, and more than are handed on in kSoon seconds.
constexpr double kOnTheWay = 2, kSoon = 1;

/// Returns the share of the stage's results that passes the stage and all later stages.
double share_passed(const GpuStage& stage, std::span<const GpuStage> stages) {
  double share = stage.passes;
  int next = stage.next;
  for (std::size_t steps = 0; next >= 0 && steps < stages.size(); ++steps) {
    share *= stages[static_cast<std::size_t>(next)].passes;
    next = stages[static_cast<std::size_t>(next)].next;
  }
  return share;
}

}  // namespace

void GpuCounts::count_length(double seconds_of_item) {
  if (last > 0) squares += (seconds_of_item - last) * (seconds_of_item - last) / 2;
  last = seconds_of_item;
}

void GpuAverages::add(const GpuCounts& now, double passed) {
  for (std::size_t span = 0; span < kSpans; ++span) {
    const double kept = std::exp(-passed / kRemembered[span]);
    GpuCounts& sums = mean[span];
    const auto blend = [kept](double& sum, double last, double value) {
      sum = sum * kept + std::max(value - last, 0.0);
    };
    for (std::size_t c = 0; c < kMostGpus; ++c) {
      blend(sums.busy[c], seen.busy[c], now.busy[c]);
      blend(sums.items[c], seen.items[c], now.items[c]);
    }
    blend(sums.short_of, seen.short_of, now.short_of);
    blend(sums.ready, seen.ready, now.ready);
    blend(sums.handed, seen.handed, now.handed);
    // blend() multiplies by `kept` again: a weight scales a variance by the square of the weight.
    sums.squares *= kept;
    blend(sums.squares, seen.squares, now.squares);
    seconds[span] = seconds[span] * kept + passed;
  }
  seen = now;
}

void GpuAverages::tell(int span, GpuStage& stage) const {
  const auto at = static_cast<std::size_t>(span);
  const double time = std::max(seconds[at], 1e-9);
  double work = 0, items = 0;
  for (std::size_t c = 0; c < kMostGpus; ++c) {
    work += mean[at].busy[c];
    items += mean[at].items[c];
  }
  stage.work = work / time;
  stage.short_of = std::min(mean[at].short_of / time, 1.0);
  const double handed = mean[at].handed + kOnTheWay;
  const double soon = kSoon * mean.back().handed / std::max(seconds.back(), 1e-9);
  const bool piles_up = seen.ready - seen.handed > soon && handed < mean[at].ready;
  stage.passes = piles_up ? handed / mean[at].ready : 1;
  stage.error = items < kLeastItems ? 1 : std::min(1.0, kSure * std::sqrt(mean[at].squares) / work);
}

std::vector<GpuSet> plan_by_averages(std::span<GpuStage> stages,
                                     std::span<const GpuAverages* const> averages,
                                     std::span<const GpuPlace> gpus, double lasted) {
  std::vector<std::vector<GpuStage>> spans;
  for (int span = 0; span < GpuAverages::kSpans; ++span) {
    for (std::size_t s = 0; s < stages.size(); ++s)
      averages[s]->tell(span, stages[s]);
    for (GpuStage& stage : stages)
      stage.work *= share_passed(stage, stages);
    spans.emplace_back(stages.begin(), stages.end());
  }
  return plan_gpus(spans, gpus, lasted);
}

}  // namespace vfm::share
