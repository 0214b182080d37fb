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

std::vector<nn::BlockPass> passes_of(const Objective& objective, nn::BlockShards* blocks) {
  using enum nn::BlockShards::Way;
  std::vector<nn::BlockPass> passes = objective.passes();
  if (passes.empty() && blocks != nullptr) passes = {{blocks, recorded}, {blocks, backward}};
  return passes;
}

}  // namespace

TrainingStep::Trained::Trained(const OtherNetwork& network, const OptimizerRecipe& recipe,
                               const EmaRecipe& average, const Parallel& parallel)
    : name(network.name),
      every(network.every),
      rate(network.optimizer ? network.optimizer->lr / recipe.lr : 1),
      shards(parallel.mesh(), *network.parameters, network.blocks),
      optimizer(network.optimizer.value_or(recipe), average, shards.states(), &parallel.mesh()) {}

TrainingStep::TrainingStep(const Recipe& recipe, const Parallel& parallel,
                           std::unique_ptr<Objective> objective, const EmaRecipe& average)
    : parallel_(parallel),
      objective_(std::move(objective)),
      reducer_(parallel.mesh(), trained_of(*objective_), recipe.parallel.reduce),
      passes_(passes_of(*objective_, parallel.blocks())) {
  networks_.emplace_back(
      OtherNetwork{"", &objective_->parameters(), objective_->every(), {}, parallel.blocks()},
      recipe.optimizer, average, parallel);
  EmaRecipe none = average;
  none.mode = kOff;
  for (const OtherNetwork& other : objective_->others())
    networks_.emplace_back(other, recipe.optimizer, none, parallel);
  if (parallel.blocks() != nullptr) gathered_ = {parallel.blocks()};
  for (const nn::BlockPass& pass : passes_)
    if (std::ranges::find(gathered_, pass.blocks) == gathered_.end())
      gathered_.push_back(pass.blocks);
  for (const OtherNetwork& other : objective_->others())
    if (other.blocks && std::ranges::find(gathered_, other.blocks) == gathered_.end())
      fail("'{}' gathers its blocks, but Objective::passes() has no pass of it", other.name);
  for (nn::BlockShards* const blocks : gathered_)
    blocks->tell([this, blocks](nn::BlockShards::Way way) { check_pass({blocks, way}); });
}

TrainingStep::~TrainingStep() {
  for (nn::BlockShards* const blocks : gathered_)
    blocks->tell({});
}

// Before the pass exchanges anything: a rank without a batch makes that of passes_, and each would
// wait for the other.
void TrainingStep::check_pass(const nn::BlockPass& pass) {
  if (!passed_) return;
  const std::size_t number = (*passed_)++ % passes_.size();
  if (passes_[number] != pass)
    fail("pass {} of a batch through gathered blocks is another than Objective::passes() says",
         number);
  if (std::ranges::any_of(gathered_, &nn::BlockShards::passing))
    fail("pass {} of a batch through gathered blocks begins before the last one has ended", number);
}

void TrainingStep::pass_all(std::span<const std::unique_ptr<Batch>> batches,
                            const PipelineSchedule& schedule, int most) {
  const bool staged = parallel_.network().pp_size() > 1;
  std::vector<bool> sums;
  for (const Trained& network : networks_)
    sums.push_back(due(network));
  reducer_.begin(std::move(sums));
  FinalGradients gradients;
  if (!watch_) gradients = {gathered_, reducer_.listener()};
  if (batches.empty() || staged)
    for (const nn::ParameterList* parameters : trained_of(*objective_))
      nn::zero_gradients(*parameters);
  for (nn::BlockShards* const blocks : gathered_)
    blocks->gather_all(true);
  passed_ = 0;
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
  for (int i = static_cast<int>(batches.size()); i < most; ++i)
    for (const nn::BlockPass& pass : passes_)
      pass.blocks->fill(pass.way, i == 0);
  passed_.reset();
  for (nn::BlockShards* const blocks : gathered_)
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

double TrainingStep::squares() {
  double all = 0;
  squares_.clear();
  for (const Trained& network : networks_) {
    if (!due(network)) continue;
    const std::optional<double> shared = network.shards.squares();
    squares_.push_back(shared ? *shared : network.optimizer.squares());
    all += squares_.back();
  }
  return all;
}

void TrainingStep::skip() {
  squares_.clear();
  ++step_;
}

// On Device::meta there is no norm to know before: the kernel that finds it is counted.
double TrainingStep::update(double learning_rate, double factor) {
  const bool counted = objective_->device() == Device::meta;
  std::vector<Trained*> changed;
  for (Trained& network : networks_)
    if (due(network)) changed.push_back(&network);
  double norm = 0;
  if (changed.size() > 1 && !counted && squares_.empty()) squares();
  if (changed.size() > 1 && !counted) {
    norm = std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0)) * factor;
    if (!std::isfinite(norm)) {
      skip();
      return norm;
    }
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    Trained& network = *changed[i];
    const std::optional<double> known = !squares_.empty() ? std::optional(squares_[i])
                                        : counted         ? std::nullopt
                                                          : network.shards.squares();
    const double own = network.optimizer.update(learning_rate * network.rate, factor, known);
    if (changed.size() == 1) norm = own;
  }
  skip();
  tell(Part::updated);
  if (std::isfinite(norm))
    for (const Trained* network : changed)
      network->shards.gather();
  return norm;
}

}  // namespace vfm::train
