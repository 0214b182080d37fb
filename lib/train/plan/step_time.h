// How long a step takes on many GPUs, term by term, and what memory it takes on each.
//
// Arithmetic is that of models/predict.h, counted by steps on Device::meta at the sizes that a rank
// of the layout has (plan/pass_work.h); memory is that of plan/layout_memory.h. What ranks exchange
// is counted there, too, and takes the latency of each message and the time of its bytes on the
// slowest link that its group crosses. A pipeline takes what its own schedule does, with its stages
// as unequal as they are (plan/pipeline_time.h). What computing hides, as the run has it: keys that
// go round under attention; of tp what chunks of rows hide (train/plan/tp_chunks.h), and without
// chunks a part as the GPU's table says; gradients under backward of a rank's last packs (but where
// steps are CUDA graphs, which gradients follow, and the sums of replicas, which backward waits
// for); matrices that are gathered under the block before, and their gradients under the block
// after. What nothing hides: weights that go from those that keep their state to all after an
// update. Predicted, never to be called measured. Not in it: reading data, checkpoints, validation.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/plan/layout_memory.h"
#include "train/plan/pass_work.h"

namespace vfm::train {

/// Seconds on the slowest rank.
struct StepTime {
  std::vector<std::pair<std::string, double>> terms;  ///< what each is, in a fixed order

  double total() const;
  double of(std::string_view term) const;  ///< 0 if there is none
};

/// Costs of the packs of an epoch, as parts of the fullest one's, in their order.
struct PackSpread {
  std::vector<double> costs = {1};

  double mean() const;
  /// Mean over steps of what the rank with the most has: packs are dealt in turn to `dp` ranks.
  double slowest(int packs, int dp) const;
  /// Of the first step the costs of the rank that has most, in turn.
  std::vector<double> fullest_rank(int packs, int dp) const;
};

/// What stages compute anew of noise levels and positions, and what it would take to send it.
struct Conditioning {
  double computed = 0, sent = 0;  ///< seconds a step, of a stage between others
};

/// A candidate and what it costs.
struct Costed {
  Candidate candidate;
  MemoryNeed need;
  double allowance = 0;  ///< bytes, for communicators: beside what Gpu::usable() leaves
  StepTime time;         ///< of one that fits
  bool fits = false;
  bool whole = false;        ///< of all blocks, and not of a few
  bool state_alone = false;  ///< is too big, and no activations were counted
  bool at_least = false;     ///< is too big by what it needs at least, and no more was counted
  double memory() const { return need.total() + allowance; }
};

class LayoutCost {
 public:
  /// Keeps the references. `recipe` is fitted to the data; `pack` the fullest.
  LayoutCost(const Recipe& recipe, const std::vector<data::Entry>& pack, const models::Gpu& gpu,
             int per_node, PackSpread spread);
  ~LayoutCost();

  /// Of a few blocks, or `whole`. Of what does not fit there is no time.
  Costed of(const Candidate& candidate, bool whole = false) const;
  /// Whether memory may be enough, and what it takes at least, without 'model.offload'.
  Costed at_least(const Candidate& candidate) const;
  /// The time, whether it fits or not.
  StepTime time(const Candidate& candidate) const;
  /// At most that, and found at once: a pipeline's schedule is not run.
  StepTime least_time(const Candidate& candidate) const;
  /// Of a pipeline.
  Conditioning conditioning(const Candidate& candidate) const;

 private:
  double allowance_of(const Candidate& candidate) const;
  enum class Pipelines { bound, even, ordered };  ///< how the time of one is found
  StepTime time_of(const Candidate& candidate, const std::vector<StageWork>& stages,
                   Pipelines pipelines) const;

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  const models::Gpu& gpu_;
  const int per_node_;
  const PackSpread spread_;
  const std::unique_ptr<PassWork> work_;  // remembers what it counted
  const std::unique_ptr<LayoutMemory> memory_;
};

}  // namespace vfm::train
