// What memory a rank of a layout takes: that of the run's own accounting (train/cost/memory.h).
//
// For a first look what lasts is counted without a batch, and what passes with few passes, once for
// each local shape; both on few ranks and with few blocks, as all blocks are alike, and ranks that
// share a state have equal parts of it. Of a pipeline's stages is counted what a microbatch more
// that is under way keeps, at each place; how many are, the run's schedule says. whole() is what a
// dry run of the layout says, to the byte.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "train/cost/memory.h"
#include "train/plan/candidate.h"
#include "train/plan/stage_cuts.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

class LayoutMemory {
 public:
  /// Keeps the references.
  LayoutMemory(const Recipe& recipe, const std::vector<data::Entry>& pack, StageCuts& cuts,
               Device device)
      : recipe_(recipe), pack_(pack), cuts_(cuts), device_(device) {}

  /// What lasts, of the fullest stage.
  MemoryNeed state(const Candidate& candidate);
  /// All, from few blocks and few ranks: within a few per cent of whole().
  MemoryNeed few(const Candidate& candidate);
  /// All blocks of all stages. Remembered.
  const MemoryNeed& whole(const Candidate& candidate);
  bool knows_whole(const Candidate& candidate) const;
  /// Found at once, without 'model.offload': few() of a pipeline, else no more than that.
  MemoryNeed at_least(const Candidate& candidate);

 private:
  enum Place : std::uint8_t { first, middle, last };  ///< of a stage, or a chunk; without: first

  using StateKey = std::tuple<int, bool, Place, ShardKind, int>;
  using PassKey = std::tuple<int, int, int, models::CpKind, int, bool, models::Recompute, bool, int,
                             ShardKind, bool, bool, int>;
  using BlockKey =
      std::tuple<int, int, int, models::CpKind, int, bool, models::Recompute, bool, int>;

  struct Kept {
    double two = 0, block = 0;
    double pinned = 0;  ///< of the host's memory, of each block
  };
  /// Bytes of a batch; of what a chunk of one block keeps of a microbatch that is under way, by the
  /// chunk's place; and of what a stage takes besides.
  struct KeptOfStages {
    double batch = 0, host = 0;
    std::array<double, 3> each{}, rest{};
  };

  enum What : std::uint8_t { lasting, passing, all };
  static Place place_of(const Candidate& candidate, int stage);
  static BlockKey block_key(const Candidate& candidate);
  MemoryNeed count(const Candidate& candidate, int of_chunk, int packs, int stage, What what) const;
  MemoryNeed state_of_stage(const Candidate& candidate, int stage);
  const MemoryNeed& pass(const Candidate& candidate);
  const Kept& kept(const Candidate& candidate);
  const KeptOfStages& kept_of_stages(const Candidate& candidate);
  double gathered_block(int tp);
  const std::vector<std::vector<int>>& under_way(const Candidate& candidate, int stage);
  MemoryNeed of_stages(const Candidate& candidate);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  StageCuts& cuts_;
  const Device device_;
  std::map<BlockKey, Kept> kept_;
  std::map<BlockKey, KeptOfStages> kept_of_stages_;
  std::map<int, double> gathered_;  // by tp
  std::map<std::tuple<int, int, int, int>, std::vector<std::vector<int>>> under_way_;
  std::map<StateKey, std::array<MemoryNeed, 2>> states_;
  std::map<PassKey, MemoryNeed> passes_;
  std::deque<std::pair<Candidate, MemoryNeed>> wholes_;
};

/// Of how many microbatches of a step a stage keeps what each of its chunks made, from forward to
/// the end of backward: the counts of its chunks, whenever there is no more before something goes.
std::vector<std::vector<int>> most_under_way(const PipelineShape& shape, int microbatches,
                                             int stage);

}  // namespace vfm::train
