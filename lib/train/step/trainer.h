// The training step, and the state it moves on: model, optimizer, place in the data.
//
// The packs of a step are planned alike on all ranks and dealt in turn to those that have samples
// of their own (train/step/parallel.h); gradients of the *sum* of the loss are added over ranks and
// divided by the number of elements of the whole step. So the update does not depend, but for
// rounding, on how many ranks there are, on what they share, on how samples are packed, or on how
// many packs go into one forward. Reading is ahead of the step (train/data/step_reader.h). Ranks
// that share samples agree on each: each reads its part of them, and then they exchange it. Not
// here: files, logging, when to validate or save (train/run.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "tensor/device.h"
#include "train/data/dataset.h"
#include "train/data/shared_samples.h"
#include "train/data/step_reader.h"
#include "train/state/optimizer.h"
#include "train/state/state_shards.h"
#include "train/step/gradients.h"
#include "train/step/objective.h"
#include "train/step/parallel.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

/// What a step did. Sums are over all ranks, so all members but the last two are the same
/// everywhere.
struct StepResult {
  LossSums loss;
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  bool skipped = false;   ///< the gradient was not finite; the weights are as before
  bool stop = false;      ///< some rank was asked to stop now (base/stop.h)
  bool wind_up = false;   ///< some rank was asked to save and end
  double flops = 0;       ///< of the model's products, forward and backward, recompute not counted
  double read_bytes = 0;  ///< of samples, from files: of a byte that ranks share one reads it
  double data_seconds = 0;    ///< how long this rank waited for its batches
  double own_read_bytes = 0;  ///< this rank's part of read_bytes
};

/// How far a run is. Part of the checkpoint.
struct RunState {
  std::int64_t step = 0;     ///< steps done, of earlier stages too (train/state/next_stage.h)
  std::int64_t updates = 0;  ///< of the weights: steps less skipped ones
  std::int64_t skips_in_row = 0;
  std::int64_t tokens = 0, samples = 0;  ///< seen, over all ranks
  /// Of a blend the samples of each of Dataset::sources().
  std::vector<std::int64_t> of_sources = {};
  DataPosition data;  ///< of the next step
  /// Of these steps, those of earlier stages: the schedule is of the others. Not in to_json(): it
  /// follows from the stages.
  std::int64_t first_step = 0;

  Json to_json() const;
  static RunState from_json(const Json& value, std::string_view what);
};

class Trainer {
 public:
  /// `recipe` is fitted to `data` (Dataset::fit). Weights begin as the seed says, and lie with all
  /// that is computed on `device`. Keeps the references. A collective.
  Trainer(const Recipe& recipe, const Dataset& data, dist::World& world,
          Device device = Device::cpu);
  ~Trainer();

  /// A collective. Throws Error when no sample of the step could be read, or when the gradient was
  /// not finite in recipe.optimizer.max_skips steps in a row. Without the update the loss and the
  /// gradients, summed over ranks, are all that there is of the step, and it was the last one.
  StepResult train_step(bool update = true);

  const Parallel& parallel() const { return parallel_; }
  const RunState& state() const { return state_; }
  /// Continues from there: after the weights, moments and average were loaded. A collective.
  void restore(const RunState& state);
  /// As Optimizer::swap_ema(), on all ranks. A collective.
  void swap_ema();
  const Objective& objective() const { return *objective_; }
  /// Of the states; who writes its parameters has the weights gathered (StateShards::gather).
  Optimizer& optimizer() { return optimizer_; }
  const StateShards& shards() const { return shards_; }
  models::Recompute recompute() const { return recompute_; }
  /// Samples of this rank's share that could not be read: key -> why.
  const std::map<std::string, std::string>& failures() const { return failures_; }

 private:
  /// A step's data: planned for all ranks, built for this one.
  struct StepData {
    StepPlan plan;
    /// One of a pipeline of which no sample could be read is null.
    std::vector<std::unique_ptr<Batch>> batches;
    PipelineSchedule schedule;  ///< of them, where there is a pipeline
    std::vector<std::pair<std::string, std::string>> failures;
    double read_bytes = 0;  ///< those that this rank read
  };
  /// A step that is to be built; where samples are shared with those of all packs, else each is
  /// taken when its batch is built.
  struct ReadStep {
    StepPlan plan;
    SharedSamples shared;
  };
  ReadStep read_step();
  StepData build(ReadStep step);
  void pass(const StepData& data);
  StepData take_data();
  StepData wait_for_data();

  const Recipe& recipe_;
  const Dataset& data_;
  const Parallel parallel_;
  models::Recompute recompute_;
  std::unique_ptr<Objective> objective_;
  StateShards shards_;
  GradientReducer reducer_;
  Optimizer optimizer_;
  RunState state_;
  std::map<std::string, std::string> failures_;
  DeviceTurn turn_;  // on the GPU, where reading computes there, too; but while it is waited for
  StepReader reader_;
  std::future<StepData> built_;  ///< of state_.step; the last member: it uses the others
};

}  // namespace vfm::train
