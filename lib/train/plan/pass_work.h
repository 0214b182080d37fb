// The work and the messages of a rank of a layout in a step, for many layouts by few counts.
//
// A step on Device::meta (train/cost/step_work.h) is counted once for each local shape: tp, cp, the
// exchange along cp, recomputation and packs together. It is counted with two blocks and with
// three; further blocks are like the third. The first and the last stage of a pipeline are counted
// with one block each, and the first also with a second chunk. Work that both stages have outside
// of blocks is done by every stage. Messages of weights and gradients, and the work for them,
// depend on tp and shards only; they are counted on few ranks. For whole() all blocks of a layout
// are counted.
// Thread-safety: one thread at a time.
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

/// Sums that grow with blocks and passes: seconds of computing by the term of a StepTime, seconds
/// of the optimizer, seconds of copies that computing does not hide, and messages by axis and
/// operation.
struct CountedWork {
  std::map<std::string, double> seconds;
  double optimizer = 0, offload = 0;
  PlanMessages messages;

  void add(const CountedWork& more, double times);
  double computing() const;  ///< sum of `seconds`
};

/// True if ranks along these axes exchange weights or gradients, false if activations.
bool is_of_state(std::string_view axes);

/// The whole step of a rank of one stage.
struct StageWork {
  int blocks = 0;
  CountedWork all;          ///< with messages of state, without messages between stages
  PlanMessages of_blocks;   ///< the messages of state that are sent block by block
  SentMessages of_streams;  ///< one message between stages
  double conditioning = 0;  ///< seconds of work that every stage repeats; 0: not known
};

class PassWork {
 public:
  /// Keeps the references. `recipe` is fitted to the data; `pack` is the fullest pack.
  PassWork(const Recipe& recipe, const std::vector<data::Entry>& pack, const models::Gpu& gpu,
           int per_node);

  /// The work of a rank of each stage: estimated from few blocks, or counted with all.
  std::vector<StageWork> few(const Candidate& candidate);
  std::vector<StageWork> whole(const Candidate& candidate);

  StageCuts& cuts() { return cuts_; }

 private:
  /// Work of one pass. The field `two` is with two blocks, `block` is of one block more. A later
  /// pass of a step has `later` more outside of blocks, and `later_block` in each block. For a
  /// pipeline, `first` and `last` are of the first and the last stage with one block each. Each
  /// further chunk of a stage has `chunk`, and all stages repeat `conditioning`.
  struct Local {
    CountedWork two, block, later, later_block, first, last, chunk, conditioning;
    SentMessages stream;
    bool has_later = false, has_stages = false;
  };
  /// Messages of state, and the optimizer: `rest` outside of blocks, `block` of each block in the
  /// first pass, `later_block` of each block in a later pass. Seconds are those of passes through
  /// networks of two and three blocks.
  struct State {
    CountedWork rest, block, later_block;
    double ranks = 1;  ///< ranks that it was counted with
  };
  using LocalKey = std::tuple<int, int, int, nn::CpKind, int, bool, nn::Recompute, bool, int>;
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
  int counted_blocks_ = 2;  // 1: the model has no blocks and is counted as one
  StageCuts cuts_;
  std::map<LocalKey, Local> locals_;
  std::map<StateKey, State> states_;
};

}  // namespace vfm::train
