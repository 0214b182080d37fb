// What a training step does, in its order, on one rank.
//
// Gradients are of the sum of the loss: each batch goes forward and back, the sums over ranks are
// formed, and the optimizer updates the weights, which then go to the ranks that share its state.
// A run does so with data (train/step/trainer.h), a measurement with a clock
// (train/calibrate/calibrate.h), and on Device::meta a step tells its memory (train/cost/memory.h)
// and its work (train/cost/step_work.h). Not here: where batches come from, what their loss is, at
// which rate weights change.
// Thread-safety: the thread that made the world; the objective says what else may be called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "train/state/optimizer.h"
#include "train/state/state_shards.h"
#include "train/step/gradients.h"
#include "train/step/objective.h"
#include "train/step/parallel.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

class TrainingStep {
 public:
  /// What is done when a watch is told. begun: gradients are zero, or the first batch will replace
  /// them, and a pipeline has its blocks. passed: a batch has, or all those of a pipeline. updated:
  /// the weights are, but only where their state is.
  enum class Part { begun, passed, updated };
  using Watch = std::function<void(Part)>;

  /// `objective` has the part of the network that `parallel` gives to this rank; `average` is that
  /// of the recipe, or off where something else keeps it. Keeps the reference of `parallel`.
  TrainingStep(const Recipe& recipe, const Parallel& parallel, std::unique_ptr<Objective> objective,
               const EmaRecipe& average);

  /// Tells `watch` of the parts of steps. So that each is by itself, sums of gradients begin in
  /// sum() then; otherwise they begin while backward of the last batch runs.
  void watch(Watch watch) { watch_ = std::move(watch); }

  /// Forward, loss and backward of all batches. A pipeline has microbatches, of which one without a
  /// readable sample is null, and their schedule. The rank that has most batches has `most`, if
  /// that is more than this rank has. A collective, also without a batch.
  void pass_all(std::span<const std::unique_ptr<Batch>> batches,
                const PipelineSchedule& schedule = {}, int most = 0);
  /// Afterwards the gradients are the sums over ranks. A collective.
  void sum();
  /// Optimizer::update() with these sums, and the new weights on all ranks. Returns the norm of
  /// `factor` * gradients before clipping; if it is not finite, nothing is changed. A collective.
  double update(double learning_rate, double factor);

  const Objective& objective() const { return *objective_; }
  const StateShards& shards() const { return shards_; }
  Optimizer& optimizer() { return optimizer_; }

 private:
  void tell(Part part) const {
    if (watch_) watch_(part);
  }

  const Parallel& parallel_;
  const std::unique_ptr<Objective> objective_;
  const StateShards shards_;
  GradientReducer reducer_;
  Optimizer optimizer_;
  Watch watch_;
};

}  // namespace vfm::train
