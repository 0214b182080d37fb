// What a training step does, in its order, on one rank.
//
// Gradients are of the sum of the loss: each batch goes forward and back, the sums over ranks are
// formed, and the optimizer updates the weights, which then go to the ranks that share its state.
// An objective has one network or several, each with its optimizer. One that is not due in a step
// keeps its weights, and its gradients are not summed.
//
// A run does so with data (train/step/trainer.h), a measurement with a clock
// (train/calibrate/calibrate.h), and on Device::meta a step tells its memory (train/cost/memory.h)
// and its work (train/cost/step_work.h). Not here: where batches come from, what their loss is, at
// which rate weights change.
// Thread-safety: the thread that made the world; the objective says what else may be called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/state/optimizer.h"
#include "train/state/state_shards.h"
#include "train/step/gradients.h"
#include "train/step/objective.h"
#include "train/step/parallel.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

class TrainingStep {
 public:
  /// A watch is called after each part of a step. begun: gradients are zero, or the first batch
  /// will replace them, and a pipeline has its blocks. passed: a batch has, or all those of a
  /// pipeline. updated: the weights are, but only where their state is.
  enum class Part { begun, passed, updated };
  using Watch = std::function<void(Part)>;

  /// `objective` has the part of the network that `parallel` gives to this rank; `average` is that
  /// of the recipe, or off where something else keeps it. It is of the first network. Keeps the
  /// reference of `parallel`.
  TrainingStep(const Recipe& recipe, const Parallel& parallel, std::unique_ptr<Objective> objective,
               const EmaRecipe& average);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  /// Tells `watch` of the parts of steps. So that each is by itself, sums of gradients begin in
  /// sum() then; otherwise they begin while backward of the last batch runs.
  void watch(Watch watch) { watch_ = std::move(watch); }

  /// The number of the next step, from 0, which decides the networks that are due. Then it counts
  /// on by itself.
  void set_step(std::int64_t step) { step_ = step; }
  /// The first step in which all networks are due: what it takes is the most of any step.
  std::int64_t fullest_step() const;

  /// Forward, loss and backward of all batches. A pipeline has microbatches, of which one without a
  /// readable sample is null, and their schedule. The rank that has most batches has `most`, if
  /// that is more than this rank has. A collective, also without a batch.
  void pass_all(std::span<const std::unique_ptr<Batch>> batches,
                const PipelineSchedule& schedule = {}, int most = 0);
  /// Afterwards the gradients are the sums over ranks. A collective.
  void sum();
  /// The sum of squares of the gradients of the networks that are due, which update() then takes.
  /// Call it after sum(), if the norm is wanted before the update. A collective.
  double squares();
  /// Optimizer::update() of each network that is due, with these sums and its own norm, and the new
  /// weights on all ranks. Returns the norm of `factor` * gradients before clipping, of several
  /// networks that of all together; if that is not finite, nothing is changed. A collective.
  double update(double learning_rate, double factor);
  /// Ends the step without changing anything.
  void skip();

  /// A network that is trained.
  struct Trained {
    Trained(const OtherNetwork& network, const OptimizerRecipe& recipe, const EmaRecipe& average,
            const Parallel& parallel);

    const std::string name;  ///< "": the first
    const int every;
    const double rate;  ///< its learning rate / the recipe's
    const StateShards shards;
    Optimizer optimizer;
  };

  const Objective& objective() const { return *objective_; }
  /// All networks that are trained; the first is that of objective().parameters().
  std::deque<Trained>& networks() { return networks_; }
  const std::deque<Trained>& networks() const { return networks_; }
  /// The shards and the optimizer of the first network.
  const StateShards& shards() const { return networks_.front().shards; }
  Optimizer& optimizer() { return networks_.front().optimizer; }
  /// StateShards::gather() of all networks. A collective.
  void gather() const;

 private:
  void tell(Part part) const {
    if (watch_) watch_(part);
  }

  void check_pass(const nn::BlockPass& pass);
  bool due(const Trained& network) const { return (step_ + 1) % network.every == 0; }

  const Parallel& parallel_;
  const std::unique_ptr<Objective> objective_;
  std::deque<Trained> networks_;  // which must not move
  GradientReducer reducer_;
  const std::vector<nn::BlockPass> passes_;  // of a batch, through networks that gather blocks
  std::vector<nn::BlockShards*> gathered_;   // of these networks
  std::optional<std::size_t> passed_;        // of passes_, while batches pass
  std::vector<double> squares_;              // of networks that are due, after squares()
  std::int64_t step_ = 0;
  Watch watch_;
};

}  // namespace vfm::train
