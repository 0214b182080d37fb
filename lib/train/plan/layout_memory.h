// What memory a rank of a layout takes: that of the run's own accounting (train/memory.h).
//
// For a first look what lasts is counted without a batch, and what passes with few passes, once for
// each local shape; both on few ranks and with few blocks, as all blocks are alike, and ranks that
// share a state have equal parts of it. whole() is what a dry run of the layout says, to the byte.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "train/memory.h"
#include "train/plan/candidate.h"
#include "train/plan/stage_cuts.h"

namespace vfm::train {

class LayoutMemory {
 public:
  /// Keeps the references.
  LayoutMemory(const Recipe& recipe, const std::vector<data::Entry>& pack, StageCuts& cuts,
               Device device)
      : recipe_(recipe), pack_(pack), cuts_(cuts), device_(device) {}

  /// Of the fullest stage, each: without activations, with those of few blocks, and all of it. Few
  /// of a pipeline are a quarter more than at_least(): to run its schedule is left to whole().
  MemoryNeed state(const Candidate& candidate);
  MemoryNeed few(const Candidate& candidate);
  MemoryNeed whole(const Candidate& candidate) const;
  /// Less than few() says, and found at once, without 'model.offload': what lasts, and what
  /// blocks keep of the microbatches under way on the first stage (train/pipeline_schedule.h).
  MemoryNeed at_least(const Candidate& candidate);

 private:
  /// Of the first stage and the last one: both the same without a pipeline.
  using Ends = std::vector<MemoryNeed>;
  using StateKey = std::tuple<int, bool, ShardKind, int>;
  using PassKey = std::tuple<int, int, models::CpKind, int, bool, models::Recompute, bool, int,
                             ShardKind, bool, bool, int>;

  using BlockKey = std::tuple<int, int, models::CpKind, int, bool, models::Recompute, bool, int>;
  struct Kept {
    double one = 0, block = 0;
    double more = 0;    ///< of each microbatch more that is under way, without its blocks
    double pinned = 0;  ///< of the host's memory, of each block
  };

  MemoryNeed count(const Candidate& candidate, int of_chunk, int packs, bool last,
                   bool with_pack) const;
  double blocks_of_end(const Candidate& candidate, bool last) const;
  Ends state_ends(const Candidate& candidate);
  const MemoryNeed& pass(const Candidate& candidate);
  MemoryNeed sum_up(const Candidate& candidate);
  const Kept& kept(const Candidate& candidate);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  StageCuts& cuts_;
  const Device device_;
  std::map<BlockKey, Kept> kept_;
  std::map<StateKey, Ends> states_;
  std::map<PassKey, MemoryNeed> passes_;
};

}  // namespace vfm::train
