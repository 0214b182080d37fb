// In what order the ranks of a pipeline compute the microbatches of a step and what they send each
// other: a pure function, so that all ranks know all of it.
//
// The network is cut into pp·vpp chunks of layers, one after the other; rank r of pp has the chunks
// r, pp + r, 2 pp + r, ... A rank numbers its own from 0 to vpp - 1. With vpp = 1 each rank takes
// turns of one forward and one backward as soon as the first gradient comes (1F1B: Narayanan et
// al., "PipeDream", 2019); with more its chunks come by turns, pp microbatches at a time
// (interleaved: Narayanan et al., "Efficient large-scale language model training on GPU clusters
// using Megatron-LM", 2021, §2.2). Where pp does not divide the microbatches, the last turns are of
// fewer.
//
// Rank r has at most min(m, pp - r) microbatches under way with vpp = 1, else
// min(m vpp, 2 (pp - r - 1) + (vpp - 1) pp + 1) chunks of microbatches. Microbatches of equal cost
// f + b take (m + (pp - 1) / vpp) (f + b) where vpp is 1 or pp divides m.
//
// Where a message takes d, a microbatch is under way for pp (f + b) + 2 (pp - 1) d on the first
// rank, which has pp of them at most: so in any order each adds 2 d (pp - 1) / pp to the step. With
// `ahead` of 1 there are pp - r - 1 more of them on rank r, and d up to (f + b) / 2 adds nothing.
//
// The steps of all ranks are one sequence in which a message is one step of two ranks. So nobody
// waits for ever, even if a send ends when it is received and each rank does one thing at a time.
// What a rank sends to another comes in the order in which that receives it.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vfm::train {

/// Ranks of a pipeline, and chunks of layers that each has; and of one chunk each how many
/// microbatches more are under way at each boundary than it takes if messages take no time.
struct PipelineShape {
  int pp = 1, vpp = 1, ahead = 0;
  int chunks() const { return pp * vpp; }
};

/// Of a microbatch on one rank, all its chunks together; in any unit of time.
struct MicrobatchCost {
  double forward = 1, backward = 2;
};

struct PipelineStep {
  enum class Kind {
    forward,
    backward,
    send_stream,       ///< what forward of the chunk made, to `peer`, who has the next chunk
    receive_stream,    ///< what goes into the chunk, from `peer`, who has the one before
    send_gradient,     ///< of what went into the chunk, to `peer`, who has the one before
    receive_gradient,  ///< of what the chunk made, from `peer`, who has the next
  };
  Kind kind = Kind::forward;
  int chunk = 0;  ///< of this rank's
  std::size_t microbatch = 0;
  int peer = -1;  ///< -1: no message

  bool operator==(const PipelineStep&) const = default;
};

struct PipelineSchedule {
  std::vector<std::size_t> order;  ///< in which microbatches enter
  std::vector<std::vector<PipelineStep>> ranks;
  double makespan = 0;  ///< if messages take no time
};

/// Of microbatches in the order in which they are given. Throws Error for a shape or costs that are
/// not possible.
PipelineSchedule schedule_in_order(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs);

/// In an order that makes the step short. It is not the given one only if that takes longer: so
/// microbatches of equal cost keep theirs. A search with fixed random numbers.
PipelineSchedule schedule_pipeline(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs);

}  // namespace vfm::train
