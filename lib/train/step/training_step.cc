// SPDX-License-Identifier: Apache-2.0
#include "train/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "train/step/pipeline.h"

namespace vfm::train {

TrainingStep::TrainingStep(const Recipe& recipe, const Parallel& parallel,
                           std::unique_ptr<Objective> objective, const EmaRecipe& average)
    : parallel_(parallel),
      objective_(std::move(objective)),
      shards_(parallel.mesh(), objective_->parameters(), parallel.blocks()),
      reducer_(parallel.mesh(), objective_->parameters(), recipe.parallel.reduce_type()),
      optimizer_(recipe.optimizer, average, shards_.states(), &parallel.mesh()) {}

void TrainingStep::pass_all(std::span<const std::unique_ptr<Batch>> batches,
                            const PipelineSchedule& schedule, int most) {
  const bool staged = parallel_.network().pp_size() > 1;
  nn::BlockShards* const blocks = parallel_.blocks();
  FinalGradients gradients;
  if (!watch_) gradients = {blocks, reducer_.listener()};
  if (batches.empty() || staged) nn::zero_gradients(objective_->parameters());
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

// On Device::meta there is no norm to know before: the kernel that finds it is counted.
double TrainingStep::update(double learning_rate, double factor) {
  const bool counted = objective_->device() == Device::meta;
  const double norm = optimizer_.update(learning_rate, factor,
                                        counted ? std::optional<double>() : shards_.squares());
  tell(Part::updated);
  if (std::isfinite(norm)) shards_.gather();
  return norm;
}

}  // namespace vfm::train
