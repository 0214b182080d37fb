// The time of a step on many GPUs, term by term, and its memory on each of them.
//
// Computing is predicted as in models/predict.h, from steps on Device::meta at the sizes of a rank
// (plan/pass_work.h). Memory is that of plan/layout_memory.h. A message takes its latency, and the
// time of its bytes on the slowest link that its group crosses. A pipeline takes the time of its
// own schedule with unequal stages (plan/pipeline_time.h).
//
// Computing hides some messages, as in the run:
//   - Attention hides keys that go round a ring.
//   - Products hide chunks of rows along tp (train/plan/tp_chunks.h). Without chunks they hide the
//     part that the GPU's table says.
//   - Backward of a rank's last packs hides gradients, but not if steps are CUDA graphs. It never
//     hides sums over replicas.
//   - The block before hides gathers of matrices. The block after hides sums of their gradients.
// Nothing hides the gathers of updated weights from the ranks that keep their state. The result is
// a prediction, never to be called a measurement. It leaves out reading of data, checkpoints and
// validation. Thread-safety: one thread at a time.
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
  std::vector<std::pair<std::string, double>> terms;  ///< name and seconds, in a fixed order

  double total() const;
  double of(std::string_view term) const;  ///< 0 if there is no such term
};

/// Costs of the packs of an epoch, relative to the fullest pack, in their order.
struct PackSpread {
  std::vector<double> costs = {1};

  double mean() const;
  /// The cost of the fullest rank, as the mean over steps; packs are dealt in turn to `dp` ranks.
  double slowest(int packs, int dp) const;
  /// The costs of the packs of the fullest rank in the first step, in order.
  std::vector<double> fullest_rank(int packs, int dp) const;
};

/// Work on noise levels and positions that each stage repeats, and the time to send the results
/// instead.
struct Conditioning {
  double computed = 0, sent = 0;  ///< seconds a step, for a stage that is neither first nor last
};

/// A candidate and what it costs.
struct Costed {
  Candidate candidate;
  MemoryNeed need;
  double allowance = 0;  ///< bytes for communicators, in addition to Gpu::usable()'s reserve
  StepTime time;         ///< empty if it does not fit
  bool fits = false;
  bool whole = false;        ///< counted with all blocks instead of few
  bool state_alone = false;  ///< does not fit by its state alone; activations were not counted
  bool at_least = false;     ///< does not fit by its lower bound; no more was counted
  double memory() const { return need.total() + allowance; }
};

class LayoutCost {
 public:
  /// Keeps the references. `recipe` is fitted to the data; `pack` is the fullest pack.
  LayoutCost(const Recipe& recipe, const std::vector<data::Entry>& pack, const models::Gpu& gpu,
             int per_node, PackSpread spread);
  ~LayoutCost();

  /// The cost by few blocks, or with `whole` by all. It has no time if the candidate does not fit.
  Costed of(const Candidate& candidate, bool whole = false) const;
  /// A lower bound of the memory without 'model.offload', and whether it fits.
  Costed at_least(const Candidate& candidate) const;
  /// The time, whether the candidate fits or not.
  StepTime time(const Candidate& candidate) const;
  /// A quick lower bound of the time; a pipeline's schedule is not run.
  StepTime least_time(const Candidate& candidate) const;
  /// For a candidate with a pipeline.
  Conditioning conditioning(const Candidate& candidate) const;

 private:
  double allowance_of(const Candidate& candidate) const;
  enum class Pipelines { bound, even, ordered };  ///< how the time of a pipeline is found
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
