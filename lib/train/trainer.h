// The training step, and the state it moves on: model, optimizer, place in the data.
//
// Data-parallel: every rank holds all weights. The packs of a step are planned alike on all ranks
// and dealt in turn; gradients of the *sum* of the loss are added over ranks and divided by the
// number of elements of the whole step. So the update does not depend, but for rounding, on how
// many ranks there are, on how samples are packed, or on how many packs go into one forward. Not
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

#include "base/json.h"
#include "dist/world.h"
#include "train/dataset.h"
#include "train/memory.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/order.h"

namespace vfm::train {

/// What a step did. Sums are over all ranks, so all members but data_seconds are the same
/// everywhere.
struct StepResult {
  LossSums loss;
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  bool skipped = false;  ///< the gradient was not finite; the weights are as before
  bool stop = false;     ///< some rank was asked to stop now (base/stop.h)
  bool wind_up = false;  ///< some rank was asked to save and end
  double flops = 0;      ///< of the model's products, forward and backward, recompute not counted
  double data_seconds = 0;  ///< how long this rank waited for its batches
};

/// How far a run is. Part of the checkpoint.
struct RunState {
  std::int64_t step = 0;     ///< steps done
  std::int64_t updates = 0;  ///< of the weights: steps less skipped ones
  std::int64_t skips_in_row = 0;
  std::int64_t tokens = 0, samples = 0;  ///< seen, over all ranks
  DataPosition data;                     ///< of the next step

  Json to_json() const;
  static RunState from_json(const Json& value, std::string_view what);
};

class Trainer {
 public:
  /// `recipe` is fitted to `data` (Dataset::fit). Weights begin as the seed says, and lie with all
  /// that is computed on `device`. Keeps the references.
  Trainer(const Recipe& recipe, const Dataset& data, dist::World& world,
          Device device = Device::cpu);
  ~Trainer();

  /// A collective. Throws Error when no sample of the step could be read, or when the gradient was
  /// not finite in recipe.optimizer.max_skips steps in a row.
  StepResult train_step();

  const RunState& state() const { return state_; }
  /// Continues from there: after the weights, moments and average were loaded.
  void restore(const RunState& state);
  const Objective& objective() const { return *objective_; }
  Optimizer& optimizer() { return optimizer_; }
  models::Recompute recompute() const { return recompute_; }
  /// Samples of this rank's share that could not be read: key -> why.
  const std::map<std::string, std::string>& failures() const { return failures_; }

 private:
  /// A step's data: planned for all ranks, built for this one.
  struct StepData {
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<std::pair<std::string, std::string>> failures;
    std::int64_t tokens = 0, samples = 0;
    double flops = 0;
    DataPosition after;
  };
  StepData prepare(std::uint32_t step);
  StepData take_data();

  const Recipe& recipe_;
  const Dataset& data_;
  dist::World& world_;
  models::Recompute recompute_;
  std::unique_ptr<Objective> objective_;
  Optimizer optimizer_;
  PackOrder order_;
  RunState state_;
  std::map<std::string, std::string> failures_;
  SampleFlops flops_;
  std::future<StepData> ahead_;  ///< of state_.step; the last member: it uses the others
};

}  // namespace vfm::train
