// SPDX-License-Identifier: Apache-2.0
#include "train/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "train/step/pipeline.h"

namespace vfm::train {

namespace {

constexpr const char* kOff = "off";

std::vector<const nn::ParameterList*> trained_of(const Objective& objective) {
  std::vector<const nn::ParameterList*> lists = {&objective.parameters()};
  for (const OtherNetwork& other : objective.others())
    lists.push_back(other.parameters);
  return lists;
}

void check_networks(const Parallel& parallel, std::span<const OtherNetwork> others) {
  if (others.empty()) return;
  if (parallel.network().pp_size() > 1) fail("several networks are not cut into stages");
  for (const OtherNetwork& other : others)
    if (std::ranges::any_of(*other.parameters, &nn::Parameter::sharded))
      fail("only the first network gathers its blocks, not '{}'", other.name);
}

}  // namespace

TrainingStep::Trained::Trained(const OtherNetwork& network, const OptimizerRecipe& recipe,
                               const EmaRecipe& average, const Parallel& parallel,
                               nn::BlockShards* blocks)
    : name(network.name),
      every(network.every),
      rate(network.optimizer ? network.optimizer->lr / recipe.lr : 1),
      shards(parallel.mesh(), *network.parameters, blocks),
      optimizer(network.optimizer.value_or(recipe), average, shards.states(), &parallel.mesh()) {}

TrainingStep::TrainingStep(const Recipe& recipe, const Parallel& parallel,
                           std::unique_ptr<Objective> objective, const EmaRecipe& average)
    : parallel_(parallel),
      objective_(std::move(objective)),
      reducer_(parallel.mesh(), trained_of(*objective_), recipe.parallel.reduce) {
  const std::vector<OtherNetwork> others = objective_->others();
  check_networks(parallel, others);
  networks_.emplace_back(OtherNetwork{"", &objective_->parameters(), objective_->every()},
                         recipe.optimizer, average, parallel, parallel.blocks());
  EmaRecipe none = average;
  none.mode = kOff;
  for (const OtherNetwork& other : others)
    networks_.emplace_back(other, recipe.optimizer, none, parallel, nullptr);
}

void TrainingStep::pass_all(std::span<const std::unique_ptr<Batch>> batches,
                            const PipelineSchedule& schedule, int most) {
  const bool staged = parallel_.network().pp_size() > 1;
  nn::BlockShards* const blocks = parallel_.blocks();
  std::vector<bool> sums;
  for (const Trained& network : networks_)
    sums.push_back(due(network));
  reducer_.begin(std::move(sums));
  FinalGradients gradients;
  if (!watch_) gradients = {blocks, reducer_.listener()};
  if (batches.empty() || staged)
    for (const nn::ParameterList* parameters : trained_of(*objective_))
      nn::zero_gradients(*parameters);
  if (staged && blocks != nullptr) blocks->gather_all(true);
  tell(Part::begun);
  if (staged && !batches.empty()) {
    run_pipeline(parallel_.mesh(), *objective_, batches, schedule, gradients);
    tell(Part::passed);
  }
  for (std::size_t i = 0; !staged && i < batches.size(); ++i) {
    const bool last = i + 1 == batches.size();
    objective_->pass(*batches[i], i == 0, last ? gradients.final : ops::Tape::Listener());
    tell(Part::passed);
  }
  if (blocks == nullptr) return;
  const int passes = static_cast<int>(batches.size());
  blocks->fill(passes, std::max(passes, most));
  blocks->finish();
}

void TrainingStep::sum() {
  reducer_.finish();
}

std::int64_t TrainingStep::fullest_step() const {
  std::int64_t turns = 1;
  for (const Trained& network : networks_)
    turns = std::lcm(turns, std::int64_t{network.every});
  return turns - 1;
}

void TrainingStep::gather() const {
  for (const Trained& network : networks_)
    network.shards.gather();
}

// On Device::meta there is no norm to know before: the kernel that finds it is counted.
double TrainingStep::update(double learning_rate, double factor) {
  const bool counted = objective_->device() == Device::meta;
  std::vector<Trained*> changed;
  std::vector<std::optional<double>> squares;
  double norm = 0;
  for (Trained& network : networks_) {
    if (!due(network)) continue;
    changed.push_back(&network);
    squares.push_back(counted ? std::optional<double>() : network.shards.squares());
  }
  ++step_;
  if (changed.size() > 1 && !counted) {
    double all = 0;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (!squares[i]) squares[i] = changed[i]->optimizer.squares();
      all += *squares[i];
    }
    norm = std::sqrt(all) * factor;
    if (!std::isfinite(norm)) return norm;
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    Trained& network = *changed[i];
    const double own = network.optimizer.update(learning_rate * network.rate, factor, squares[i]);
    if (changed.size() == 1) norm = own;
  }
  tell(Part::updated);
  if (std::isfinite(norm))
    for (const Trained* network : changed)
      network->shards.gather();
  return norm;
}

}  // namespace vfm::train
