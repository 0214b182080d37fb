// Training steps on data, and the state that they advance: model, optimizer, position in the data.
//
// All ranks plan the packs of a step alike. Packs are dealt in turn to the groups of ranks with
// samples of their own (train/step/parallel.h). Gradients of the *sum* of the loss are added over
// ranks and divided by the number of elements of the whole step. So, except for rounding, the
// update does not depend on the number of ranks, on what they share, on the packing of samples, or
// on the number of packs in a forward. Reading is ahead of the step (train/data/step_reader.h).
// Ranks that share samples each read a part, and then exchange it. Files, logging, and the times of
// validations and checkpoints are in train/run.h.
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
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_saver.h"
#include "train/data/dataset.h"
#include "train/data/shared_samples.h"
#include "train/data/step_reader.h"
#include "train/step/parallel.h"
#include "train/step/pipeline_schedule.h"
#include "train/step/recent_steps.h"
#include "train/step/training_step.h"

namespace vfm::train {

/// The result of a step. All members except the last two are the same on all ranks; sums are over
/// all ranks.
struct StepResult {
  LossSums loss;
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  bool skipped = false;   ///< the gradient was not finite, or a spike; the weights did not change
  bool spike = false;     ///< loss or gradient is far above the last ones ('train.skip_spikes')
  bool stop = false;      ///< some rank was asked to stop at once (base/stop.h)
  bool wind_up = false;   ///< some rank was asked to save and end
  bool term = false;      ///< by SIGTERM (base/save_at_term.h)
  double flops = 0;       ///< of the model's products, forward and backward, without recomputation
  double read_bytes = 0;  ///< bytes of samples, from files; bytes that ranks share count once
  SaveNotes save;         ///< sums of what ranks told of a checkpoint (Trainer::tell())
  double data_seconds = 0;    ///< time that this rank waited for its batches
  double own_read_bytes = 0;  ///< this rank's part of read_bytes
};

/// The progress of a run, which is part of a checkpoint.
struct RunState {
  /// Steps done, including those of earlier stages (train/state/next_stage.h).
  std::int64_t step = 0;
  std::int64_t updates = 0;  ///< updates of the weights: steps less skipped steps
  std::int64_t skips_in_row = 0;
  std::int64_t tokens = 0, samples = 0;  ///< seen so far, over all ranks
  /// For a blend: samples seen from each of Dataset::sources().
  std::vector<std::int64_t> of_sources = {};
  DataPosition data;  ///< position of the next step
  /// Updates of networks after the first (train/step/objective.h).
  std::vector<std::int64_t> other_updates = {};
  RecentSteps recent = {};  ///< with 'train.skip_spikes'
  /// Steps of earlier stages, part of `step`; the schedule covers the others. Not in to_json(), as
  /// it follows from the stages.
  std::int64_t first_step = 0;

  Json to_json() const;
  static RunState from_json(const Json& value, std::string_view what);
};

class Trainer {
 public:
  /// `recipe` is fitted to `data` (Dataset::fit). Weights are initialized by the seed. All
  /// computing is on `device`. Keeps the references. A collective.
  Trainer(const Recipe& recipe, const Dataset& data, dist::World& world,
          Device device = Device::cpu);
  ~Trainer();

  /// Makes a step. A collective. Throws Error if no sample of the step could be read, or if more
  /// than recipe.optimizer.max_skips consecutive steps were skipped. Without `update` the step ends
  /// with the loss and the summed gradients, and no step may follow.
  StepResult train_step(bool update = true);
  /// What this rank tells the others in the steps from now on.
  void tell(const SaveNotes& own) { own_notes_ = own; }

  const Parallel& parallel() const { return parallel_; }
  const RunState& state() const { return state_; }
  /// Continues from `state`; call it after weights, moments and average were loaded. A collective.
  void restore(const RunState& state);
  /// Optimizer::swap_ema() on all ranks. A collective.
  void swap_ema();
  const Objective& objective() const { return step_.objective(); }
  /// Throws Error if ranks that should have the same weights and state differ
  /// (train/state/replicas.h). A collective.
  void compare_replicas() const;
  /// The networks after the first, for a checkpoint.
  std::vector<OtherState> other_states() const;
  /// The optimizer of the states of the first network. After writing its parameters call
  /// StateShards::gather().
  Optimizer& optimizer() { return step_.optimizer(); }
  const StateShards& shards() const { return step_.shards(); }
  nn::Recompute recompute() const { return recompute_; }
  /// Samples of this rank's share that could not be read: key -> why.
  const std::map<std::string, std::string>& failures() const { return failures_; }

 private:
  /// The data of a step: planned for all ranks, built for this one.
  struct StepData {
    StepPlan plan;
    /// In a pipeline a batch of which no sample could be read is null.
    std::vector<std::unique_ptr<Batch>> batches;
    PipelineSchedule schedule;  ///< schedule of the batches, with a pipeline
    std::vector<std::pair<std::string, std::string>> failures;
    double read_bytes = 0;  ///< bytes that this rank read
  };
  /// A step to build. Shared samples of all its packs are in `shared`; otherwise each sample is
  /// taken when its batch is built.
  struct ReadStep {
    StepPlan plan;
    SharedSamples shared;
  };
  ReadStep read_step();
  StepData build(ReadStep step);
  StepData take_data();
  StepData wait_for_data();

  const Recipe& recipe_;
  const Dataset& data_;
  const Parallel parallel_;
  nn::Recompute recompute_;
  TrainingStep step_;
  RunState state_;
  SaveNotes own_notes_;
  std::map<std::string, std::string> failures_;
  DeviceTurn turn_;  // held if reading computes on the GPU, except while waiting for data
  StepReader reader_;
  std::future<StepData> built_;  ///< data of state_.step; the last member: it uses the others
};

}  // namespace vfm::train
