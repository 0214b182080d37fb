// SPDX-License-Identifier: Apache-2.0
#include "train/cost/step_work.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/json.h"
#include "tensor/meta.h"
#include "train/cost/memory.h"
#include "train/kind.h"
#include "train/state/optimizer.h"
#include "train/state/state_shards.h"
#include "train/step/gradients.h"
#include "train/step/parallel.h"
#include "train/step/pipeline.h"

namespace vfm::train {
namespace {

/// The update, with and without the average.
KernelCalls optimizer_work(const Recipe& recipe, const nn::ParameterList& parameters,
                           Device device) {
  const EmaRecipe ema = average_on_device(recipe.ema, device);
  Optimizer optimizer(recipe.optimizer, ema, parameters);
  KernelCalls calls;
  const double often = 1.0 / ema.every;
  for (const auto& [before, share] : {std::pair{0, 1 - often}, {ema.every - 1, often}}) {
    if (share == 0) continue;
    optimizer.updates = before;
    const MetaAccount account(device);
    optimizer.update(0, 1);
    add_calls(calls, account.calls(), share);
  }
  return calls;
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
  const std::unique_ptr<Objective> objective =
      kind_of(recipe.model.type)
          .make_objective(recipe, recompute, Device::meta, parallel.network());
  const RankPacks packs = packs_of_rank(recipe, ranks);
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs.together; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  StepWork work;
  const auto add_sent = [&](double times) {
    for (const std::string& axis : world->traffic().axes()) {
      work.sent[axis] += times * static_cast<double>(world->traffic().of(axis).bytes);
      for (std::size_t i = 0; i < dist::kOperations; ++i) {
        const auto operation = static_cast<dist::Operation>(i);
        const dist::Traffic::Count count = world->traffic().of(axis, operation);
        if (count.calls == 0) continue;
        SentMessages& sent = work.messages[{axis, operation}];
        sent.calls += times * static_cast<double>(count.calls);
        sent.bytes += times * static_cast<double>(count.bytes);
      }
    }
    world->traffic().reset();
  };
  if (parallel.blocks() != nullptr) parallel.blocks()->gather_all(true);
  add_sent(1);
  const double passes = static_cast<double>(packs.all) / packs.together;
  for (const auto& [first, share] : {std::pair{true, 1.0}, {false, passes - 1}}) {
    if (share == 0) continue;
    const MetaAccount account(device);
    if (const int pp = parallel.network().pp_size(); pp > 1) {
      std::vector<std::unique_ptr<Batch>> batch;
      batch.push_back(objective->blank(samples));
      run_pipeline(parallel.mesh(), *objective, batch,
                   schedule_in_order({pp, recipe.parallel.vpp}, std::vector<MicrobatchCost>(1)));
    } else {
      objective->pass(*objective->blank(samples), first);
    }
    add_calls(work.packs, account.calls(), share);
    add_sent(share);
    for (CopyBeside copy : account.copies()) {
      copy.times = share;
      work.copies.push_back(std::move(copy));
    }
  }
  GradientReducer(parallel.mesh(), objective->parameters(), recipe.parallel.reduce_type()).finish();
  if (parallel.blocks() != nullptr) parallel.blocks()->finish();
  const StateShards shards(parallel.mesh(), objective->parameters(), parallel.blocks());
  shards.gather();
  add_sent(1);
  work.optimizer = optimizer_work(recipe, shards.states(), device);
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
