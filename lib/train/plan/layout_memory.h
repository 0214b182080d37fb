// The memory that a rank of a layout needs, by the run's own accounting (train/cost/memory.h).
//
// An estimate is put together from few counts. Permanent memory is counted without a batch.
// Temporary memory is counted with few passes, once for each local shape. Both are counted on few
// ranks and with few blocks (StageCuts::few()), as ranks that share a state have equal parts of it.
// For the stages of a pipeline, the memory of each further microbatch in flight is counted by the
// place of the stage, or of each stage by itself if blocks are not alike. The run's schedule gives
// the number of microbatches. For whole() all is counted; its result is that of a dry run of the
// layout, to the byte. Thread-safety: one thread at a time.
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

  /// Permanent memory of the fullest stage.
  MemoryNeed state(const Candidate& candidate);
  /// All memory, estimated from few blocks and ranks: within a few per cent of whole().
  MemoryNeed few(const Candidate& candidate);
  /// All memory, counted with all blocks of all stages. The result is kept.
  const MemoryNeed& whole(const Candidate& candidate);
  bool knows_whole(const Candidate& candidate) const;
  /// A quick lower bound, without 'model.offload'. With a pipeline it is few().
  MemoryNeed at_least(const Candidate& candidate);

 private:
  /// Place of a stage or chunk; first without a pipeline.
  enum Place : std::uint8_t { first, middle, last };

  using StateKey = std::tuple<int, bool, Place, ShardKind, int>;
  using PassKey = std::pair<Candidate, int>;  // packs of a rank

  struct Kept {
    double two = 0, block = 0;
    double pinned = 0;  ///< pinned bytes of the host's memory, for each block
  };
  /// Bytes of a batch, device and host; what a chunk of one block keeps of a microbatch in flight,
  /// by the chunk's place; and what a stage needs besides.
  struct KeptOfStages {
    double batch = 0, host = 0;
    std::array<double, 3> each{}, rest{};
  };

  /// What each chunk of a stage keeps of a microbatch in flight, bytes of device and pinned; the
  /// bytes of a batch, those of the host, of gathered blocks, and what the stage needs besides.
  struct StageInFlight {
    std::vector<double> bytes, pinned;
    double batch = 0, host = 0, gathered = 0, rest = 0;
  };

  enum What : std::uint8_t { lasting, passing, all };
  static Place place_of(const Candidate& candidate, int stage);
  Recipe counted_recipe(const Candidate& candidate, const std::vector<int>& chunks,
                        int packs) const;
  int rank_of_stage(const Candidate& candidate, const Recipe& recipe, int stage, bool none) const;
  MemoryNeed count(const Candidate& candidate, const std::vector<int>& chunks, int packs, int stage,
                   What what) const;
  MemoryNeed state_of_stage(const Candidate& candidate, int stage);
  const MemoryNeed& pass(const Candidate& candidate);
  const Kept& kept(const Candidate& candidate);
  const KeptOfStages& kept_of_stages(const Candidate& candidate);
  double gathered_block(int tp);
  StageInFlight even_stage(const Candidate& candidate, int stage);
  const StageInFlight& uneven_stage(const Candidate& candidate, int stage);
  const std::vector<std::vector<int>>& under_way(const Candidate& candidate, int stage);
  MemoryNeed of_stages(const Candidate& candidate);

  const Recipe& recipe_;
  const std::vector<data::Entry>& pack_;
  StageCuts& cuts_;
  const Device device_;
  std::map<Candidate, Kept> kept_;  // by Candidate::of_pass(), as the next two
  std::map<Candidate, KeptOfStages> kept_of_stages_;
  std::map<int, double> gathered_;  // key: tp
  std::map<std::tuple<int, int, int, int>, std::vector<std::vector<int>>> under_way_;
  std::map<StateKey, std::array<MemoryNeed, 2>> states_;
  std::map<std::tuple<int, int, int, int, ShardKind, int>, MemoryNeed> states_of_stages_;
  std::map<std::tuple<Candidate, int, int, int, bool>, StageInFlight> in_flight_;
  std::map<PassKey, MemoryNeed> passes_;
  std::deque<std::pair<Candidate, MemoryNeed>> wholes_;
};

/// The most microbatches in flight on a stage: those whose activations it keeps between forward and
/// the end of backward. Returns the counts by chunk at each local maximum.
std::vector<std::vector<int>> most_under_way(const PipelineShape& shape, int microbatches,
                                             int stage);

}  // namespace vfm::train
