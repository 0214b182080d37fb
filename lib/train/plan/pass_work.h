// The work and the messages of a rank of a layout in a step, for many layouts by few counts.
//
// A step on Device::meta (train/cost/step_work.h) is counted once for each local shape: tp, cp, the
// exchange along cp, recomputation and packs together. It is counted with two blocks and with
// three; further blocks are like the third. The first and the last stage of a pipeline are counted
// with one block each, and the first also with a second chunk. Work that both stages have outside
// of blocks is done by every stage. Messages of weights and gradients, and the work for them,
// depend on tp and shards only; they are counted on few ranks. For whole() all blocks of a layout
// are counted.
//
// If blocks are not alike, the two networks are those of StageCuts::few(). A block of each kind is
// counted by a stage that has it beside another block, less that stage without it. Messages of
// weights and gradients are dealt out to stages by the number of weights. What goes from chunk to
// chunk is counted for the chunks of the layout (train/cost/in_flight.h).
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
  void divide(double parts);
  double computing() const;  ///< sum of `seconds`
};

/// True if ranks along these axes exchange weights or gradients, false if activations.
bool is_of_state(std::string_view axes);

/// The whole step of a rank of one stage.
struct StageWork {
  int blocks = 0;
  double weights = 0;       ///< blocks, in units of the mean block by number of weights
  CountedWork all;          ///< with messages of state, without messages between stages
  PlanMessages of_blocks;   ///< the messages of state that are sent block by block
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

  /// What each chunk of the candidate's pipeline but the last sends to the next one.
  const std::vector<SentMessages>& streams(const Candidate& candidate);

  StageCuts& cuts() { return cuts_; }

 private:
  /// Work of one pass. The field `two` is with `few_.less` blocks, `block` is of the mean block
  /// more. A later pass of a step has `later` more outside of blocks, and `later_block` in each
  /// block. For a pipeline, `first` and `last` are of the first and the last stage with one block
  /// each, and `kinds` are of a block of each kind more. Each further chunk of a stage has `chunk`,
  /// and all stages repeat `conditioning`.
  struct Local {
    CountedWork two, block, later, later_block, first, last, chunk, conditioning;
    std::map<int, CountedWork> kinds;
    bool has_later = false, has_stages = false;
  };
  /// Messages of state, and the optimizer: `rest` outside of blocks, `block` of each block in the
  /// first pass, `later_block` of each block in a later pass. Seconds are those of passes through
  /// networks of few blocks.
  struct State {
    CountedWork rest, block, later_block;
    double ranks = 1;  ///< ranks that it was counted with
  };
  using StateKey = std::tuple<int, ShardKind, bool, bool>;

  CountedWork count_pass(const Candidate& one, const std::vector<int>& chunks, int passes,
                         int stage) const;
  Local& local(const Candidate& candidate, bool later, bool stages);
  void count_stages(Candidate one, Local& local) const;
  const State& state(const Candidate& candidate);
  CountedWork count(const Candidate& candidate, const std::vector<int>& chunks, int packs,
                    int rank) const;
  void add_state(const Candidate& candidate, StageWork& work);
  void add_work_of_shards(const Candidate& candidate, StageWork& work);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  const models::Gpu& gpu_;
  const int per_node_;
  StageCuts cuts_;
  const FewBlocks few_;
  int counted_blocks_;  // of few_.less; 1: the model has no blocks and is counted as one
  std::map<Candidate, Local> locals_;  // by Candidate::of_pass()
  std::map<std::tuple<Candidate, int, int>, std::vector<SentMessages>> streams_;
  std::map<StateKey, State> states_;
};

}  // namespace vfm::train
