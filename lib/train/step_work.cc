// SPDX-License-Identifier: Apache-2.0
#include "train/step_work.h"

#include <algorithm>
#include <map>
#include <memory>

#include "tensor/meta.h"
#include "train/kind.h"
#include "train/memory.h"
#include "train/optimizer.h"

namespace vfm::train {
namespace {

/// `share` of what the account counted, added to `kernels`.
void add(std::map<std::string, StepKernel>& kernels, const MetaAccount& account, double share) {
  for (const auto& [name, work] : account.kernels()) {
    StepKernel& sum = kernels[name];
    sum.name = name;
    sum.kind = work_kind_name(work.kind);
    sum.calls += share * static_cast<double>(work.calls);
    sum.flops += share * work.flops;
    sum.bytes += share * work.bytes;
  }
}

/// Zeroing the gradients and the update, with and without the average.
std::map<std::string, StepKernel> optimizer_work(const Recipe& recipe,
                                                 const nn::ParameterList& parameters,
                                                 Device device) {
  const EmaRecipe ema = average_on_device(recipe.ema, device);
  Optimizer optimizer(recipe.optimizer, ema, parameters);
  std::map<std::string, StepKernel> kernels;
  const double often = 1.0 / ema.every;
  for (const auto& [before, share] : {std::pair{0, 1 - often}, {ema.every - 1, often}}) {
    if (share == 0) continue;
    optimizer.updates = before;
    const MetaAccount account(device);
    nn::zero_gradients(parameters);
    optimizer.update(0, 1);
    add(kernels, account, share);
  }
  return kernels;
}

}  // namespace

std::vector<StepKernel> step_work(const Recipe& recipe, int ranks, models::Recompute recompute,
                                  Device device, const std::vector<data::Entry>& pack) {
  const std::unique_ptr<Objective> objective =
      kind_of(recipe.model.type).make_objective(recipe, recompute, Device::meta);
  const RankPacks packs = packs_of_rank(recipe, ranks);
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs.together; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  std::map<std::string, StepKernel> kernels;
  {
    const MetaAccount account(device);
    objective->pass(*objective->blank(samples));
    add(kernels, account, static_cast<double>(packs.all) / packs.together);
  }
  std::vector<StepKernel> list;
  for (auto& [name, kernel] : kernels)
    list.push_back(std::move(kernel));
  for (auto& [name, kernel] : optimizer_work(recipe, objective->parameters(), device)) {
    kernel.kind = "optimizer";
    list.push_back(std::move(kernel));
  }
  return list;
}

Json work_by_kind(const std::vector<StepKernel>& kernels) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const StepKernel& kernel : kernels) {
    sums[kernel.kind].first += kernel.flops;
    sums[kernel.kind].second += kernel.bytes;
  }
  Json json;
  for (const auto& [kind, sum] : sums)
    json[kind] = {{"flops", sum.first}, {"bytes", sum.second}};
  return json;
}

Json work_by_kernel(const std::vector<StepKernel>& kernels) {
  Json json = Json::array();
  for (const StepKernel& kernel : kernels)
    json.push_back({{"name", kernel.name},
                    {"kind", kernel.kind},
                    {"calls", kernel.calls},
                    {"flops", kernel.flops},
                    {"bytes", kernel.bytes}});
  return json;
}

}  // namespace vfm::train
