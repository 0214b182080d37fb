// What a rank of a layout computes and sends in a step, found from few counts for many layouts.
//
// A step on Device::meta (train/cost/step_work.h) is counted once for each local shape, which is
// that of tp, cp and what its ranks exchange, recomputation and packs together: with two blocks and
// with three, as all others are like the third. The first and the last stage of a pipeline are
// counted with a block each, and the first with a second chunk; what is in both, and in no block,
// every stage computes anew. What ranks send of weights and gradients, and compute for it, depends
// on tp and shards alone, and is counted there, on few ranks. `whole` counts all blocks of a
// layout. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/gpu_table.h"
#include "train/cost/step_work.h"
#include "train/plan/candidate.h"
#include "train/plan/stage_cuts.h"

namespace vfm::train {

using PlanMessages = std::map<std::pair<std::string, dist::Operation>, SentMessages>;

/// Sums that grow with blocks and passes: seconds of what is computed, by the term of a StepTime;
/// copies that nothing hides; and messages by axis and operation.
struct CountedWork {
  std::map<std::string, double> seconds;
  double optimizer = 0, offload = 0;
  PlanMessages messages;

  void add(const CountedWork& more, double times);
  double computing() const;  ///< all of `seconds`
};

/// Whether ranks along these axes exchange weights or gradients, and not activations.
bool is_of_state(std::string_view axes);

/// A rank's whole step.
struct StageWork {
  int blocks = 0;
  CountedWork all;          ///< messages of state are in it, too, those of stages are not
  PlanMessages of_blocks;   ///< of the messages of state those that come block by block
  SentMessages of_streams;  ///< one message between stages
  double conditioning = 0;  ///< seconds of what each stage computes anew; 0: not known
};

class PassWork {
 public:
  /// Keeps the references. `recipe` is fitted to the data; `pack` the fullest.
  PassWork(const Recipe& recipe, const std::vector<data::Entry>& pack, const models::Gpu& gpu,
           int per_node);

  /// Of a rank of each stage.
  std::vector<StageWork> few(const Candidate& candidate);
  std::vector<StageWork> whole(const Candidate& candidate);

  StageCuts& cuts() { return cuts_; }

 private:
  /// One pass: of two blocks, and what one more adds; what a pass that is not a step's first has
  /// more, in no block and in each; of a pipeline's first and last stage, with a block each, of
  /// each chunk but a stage's first, and of what all stages compute anew.
  struct Local {
    CountedWork two, block, later, later_block, first, last, chunk, conditioning;
    SentMessages stream;
    bool has_later = false, has_stages = false;
  };
  /// Messages of state and the optimizer: of what is in no block, and of each block; of the first
  /// pass and of each later one. Seconds are those of the pass on a network of two blocks, or
  /// three.
  struct State {
    CountedWork rest, block, later_block;
    double ranks = 1;  ///< of those that it was counted with
  };
  using LocalKey =
      std::tuple<int, int, int, models::CpKind, int, bool, models::Recompute, bool, int>;
  using StateKey = std::tuple<int, ShardKind, bool, bool>;

  Local& local(const Candidate& candidate, bool later, bool stages);
  const State& state(const Candidate& candidate);
  CountedWork count(const Candidate& candidate, std::vector<int> chunks, int packs, int rank,
                    SentMessages* stream = nullptr) const;
  void add_state(const Candidate& candidate, StageWork& work);
  void add_work_of_shards(const Candidate& candidate, StageWork& work);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  const models::Gpu& gpu_;
  const int per_node_;
  int counted_blocks_ = 2;  // 1: the model has none, and is counted as one
  StageCuts cuts_;
  std::map<LocalKey, Local> locals_;
  std::map<StateKey, State> states_;
};

}  // namespace vfm::train
