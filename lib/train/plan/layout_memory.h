// What memory a rank of a layout takes: that of the run's own accounting (train/memory.h).
//
// For a first look what lasts is counted on as many ranks as share a state, without a batch; what
// passes is counted with few ranks, blocks and passes, once for each local shape, as all blocks are
// alike. whole() is what a dry run of the layout says, to the byte.
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

  /// Of the fullest stage, each: without activations, with those of few blocks, and all of it.
  MemoryNeed state(const Candidate& candidate);
  MemoryNeed few(const Candidate& candidate);
  MemoryNeed whole(const Candidate& candidate) const;

 private:
  /// Of the first stage and the last one: both the same without a pipeline.
  using Ends = std::vector<MemoryNeed>;
  using StateKey = std::tuple<int, int, int, ShardKind, int>;
  using PassKey = std::tuple<int, int, models::CpKind, int, bool, models::Recompute, bool, int,
                             ShardKind, bool, bool, int, int, int>;

  MemoryNeed count(const Candidate& candidate, int of_chunk, int packs, bool last,
                   bool with_pack) const;
  Ends counted_ends(const Candidate& candidate, int packs, bool with_pack) const;
  const Ends& state_ends(const Candidate& candidate);
  const Ends& pass_ends(const Candidate& candidate);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  StageCuts& cuts_;
  const Device device_;
  std::map<StateKey, Ends> states_;
  std::map<PassKey, Ends> passes_;
};

}  // namespace vfm::train
