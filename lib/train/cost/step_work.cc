// SPDX-License-Identifier: Apache-2.0
#include "train/cost/step_work.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tensor/meta.h"
#include "train/cost/memory.h"
#include "train/kind.h"
#include "train/step/training_step.h"

namespace vfm::train {
namespace {

/// Adds what was sent since the last reset, so often.
void add_sent(StepWork& work, const dist::Traffic& traffic, double times) {
  for (const std::string& axis : traffic.axes()) {
    work.sent[axis] += times * static_cast<double>(traffic.of(axis).bytes);
    for (std::size_t i = 0; i < dist::kOperations; ++i) {
      const auto operation = static_cast<dist::Operation>(i);
      const dist::Traffic::Count count = traffic.of(axis, operation);
      if (count.calls == 0) continue;
      SentMessages& sent = work.messages[{axis, operation}];
      sent.calls += times * static_cast<double>(count.calls);
      sent.bytes += times * static_cast<double>(count.bytes);
    }
  }
}

/// Of each kernel, with its kind, in that order.
using Named = std::pair<std::string_view, std::pair<std::string, KernelWork>>;
std::vector<Named> kernels_of(const StepWork& work) {
  std::vector<Named> kernels;
  for (const auto& named : work_by_name(work.packs))
    kernels.emplace_back(work_kind_name(named.second.kind), named);
  for (const auto& named : work_by_name(work.optimizer))
    kernels.emplace_back("optimizer", named);
  return kernels;
}

}  // namespace

StepWork step_work(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                   const std::vector<data::Entry>& pack, int rank) {
  const std::unique_ptr<dist::World> world = dist::counted_world(rank, ranks);
  const Parallel parallel(recipe, *world);
  const EmaRecipe average = average_on_device(recipe.ema, device);
  TrainingStep step(recipe, parallel,
                    kind_of(recipe.model.type)
                        .make_objective(recipe, recompute, Device::meta, parallel.network()),
                    average);
  const RankPacks packs = packs_of_rank(recipe, ranks);
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs.together; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  // How often a batch passes like each of these: like the first one of a step, and like one after
  // it. In a pipeline these are alike.
  const bool staged = parallel.network().pp_size() > 1;
  std::vector<std::vector<double>> times = {{1}};
  if (const double later = static_cast<double>(packs.all) / packs.together - 1; later != 0) {
    if (!staged) times.emplace_back();
    times.back().push_back(later);
  }
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<KernelCalls> calls;  // of each
  for (std::size_t i = 0; i < times.size(); ++i) {
    const MetaAccount account(device);
    batches.push_back(step.objective().blank(samples));
    calls.push_back(account.calls());
  }
  StepWork work;
  std::optional<MetaAccount> account;
  std::size_t passed = 0;
  double updates = 0;
  step.watch([&](TrainingStep::Part part) {
    if (part == TrainingStep::Part::updated)
      return add_calls(work.optimizer, account->calls(), updates);
    if (part == TrainingStep::Part::begun) {
      add_sent(work, world->traffic(), 1);
    } else {
      add_calls(calls[passed], account->calls());
      for (const double often : times[passed]) {
        add_calls(work.packs, calls[passed], often);
        add_sent(work, world->traffic(), often);
        for (CopyBeside copy : account->copies()) {
          copy.times = often;
          work.copies.push_back(std::move(copy));
        }
      }
      ++passed;
    }
    world->traffic().reset();
    account.emplace(device);
  });
  PipelineSchedule schedule;
  if (staged)
    schedule = schedule_in_order({parallel.network().pp_size(), recipe.parallel.vpp},
                                 std::vector<MicrobatchCost>(1));
  step.set_step(step.fullest_step());
  step.pass_all(batches, schedule);
  step.sum();
  const auto update = [&](std::int64_t before, double often) {
    step.set_step(step.fullest_step());
    step.optimizer().updates = before;
    updates = often;
    account.emplace(device);
    step.update(0, 1);
  };
  const double averages = 1.0 / average.every;
  update(average.every - 1, averages);
  add_sent(work, world->traffic(), 1);
  if (averages < 1) update(0, 1 - averages);
  return work;
}

Json work_by_kind(const StepWork& work) {
  std::map<std::string_view, std::pair<double, double>> sums;
  for (const auto& [kind, kernel] : kernels_of(work)) {
    sums[kind].first += kernel.second.flops;
    sums[kind].second += kernel.second.bytes;
  }
  Json json;
  for (const auto& [kind, sum] : sums)
    json[std::string(kind)] = {{"flops", sum.first}, {"bytes", sum.second}};
  return json;
}

Json work_by_kernel(const StepWork& work) {
  Json json = Json::array();
  for (const auto& [kind, kernel] : kernels_of(work))
    json.push_back({{"name", kernel.first},
                    {"kind", kind},
                    {"calls", kernel.second.calls},
                    {"flops", kernel.second.flops},
                    {"bytes", kernel.second.bytes}});
  return json;
}

}  // namespace vfm::train
