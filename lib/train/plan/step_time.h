// How long a step takes on many GPUs, term by term, and what memory it takes on each.
//
// Arithmetic and memory are those of models/predict.h, counted by a step on Device::meta at the
// sizes that a rank of the layout has; of a model of many blocks two and three of them are counted,
// and the others are alike. What ranks exchange is counted there, too, and takes the latency of
// each message and the time of its bytes on the slowest link that its group crosses. What
// computing hides: keys that go round under attention, gradients under backward of a rank's last
// packs (but where steps are CUDA graphs, which gradients follow), a part of tp as the GPU's table
// says, and of the state's shards what is gathered or reduced beside computing.
// Predicted, never to be called measured. Not in it: reading data, checkpoints, validation.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/predict.h"
#include "train/memory.h"
#include "train/plan/candidate.h"
#include "train/step_work.h"

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
  double memory() const { return need.total() + allowance; }
};

/// A communicator's buffers on each of its GPUs, judged: NCCL has some MiB for each of its
/// channels.
inline constexpr double kCommunicatorBytes = 256.0 * (1 << 20);

class LayoutCost {
 public:
  /// Keeps the references. `recipe` is fitted to the data; `pack` the fullest.
  LayoutCost(const Recipe& recipe, const std::vector<data::Entry>& pack, const models::Gpu& gpu,
             int per_node, PackSpread spread);

  /// Of a few blocks, or `whole`. Of what does not fit there is no time.
  Costed of(const Candidate& candidate, bool whole = false) const;
  /// The time, whether it fits or not.
  StepTime time(const Candidate& candidate) const;

 private:
  struct Counted;
  template <class Count>
  Counted of_blocks(const Candidate& candidate, bool whole, const Count& count) const;
  Recipe counted_recipe(const Candidate& candidate, int layers, int own) const;
  Counted count_memory(const Candidate& candidate, int layers, const std::vector<data::Entry>& pack,
                       int own) const;
  MemoryNeed memory_of(const Candidate& candidate, bool whole,
                       const std::vector<data::Entry>& pack) const;
  Counted count_time(const Candidate& candidate, int layers) const;
  StepTime time_of(const Candidate& candidate, const Counted& all, const MemoryNeed& need) const;

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  const models::Gpu& gpu_;
  const int per_node_;
  const PackSpread spread_;
};

}  // namespace vfm::train
