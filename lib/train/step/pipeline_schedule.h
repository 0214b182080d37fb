// The order in which the ranks of a pipeline compute the microbatches of a step and send messages:
// a pure function, so that every rank knows the order of all.
//
// The network is cut into pp·vpp consecutive chunks of layers. Rank r of pp has the chunks r, pp+r,
// 2pp+r, ..., which it numbers from 0 to vpp-1. With vpp = 1 each rank alternates one forward and
// one backward as soon as the first gradient comes (1F1B: Narayanan et al., "PipeDream", 2019).
// With more, the chunks of a rank alternate after every pp microbatches (interleaved: Narayanan et
// al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", 2021,
// §2.2). If pp does not divide the number of microbatches, the last turns are shorter.
//
// With vpp = 1, rank r has at most min(m, pp-r) of m microbatches in flight. Otherwise it has at
// most min(m vpp, 2(pp-r-1) + (vpp-1)pp + 1) chunks of microbatches in flight. Microbatches of
// equal cost f+b take (m + (pp-1)/vpp) (f+b) if vpp is 1 or pp divides m.
//
// If a message takes d, a microbatch is in flight for pp(f+b) + 2(pp-1)d on the first rank, which
// has at most pp of them. So in any order each microbatch adds 2d(pp-1)/pp to the step. With
// `ahead` of 1 rank r has pp-r-1 more microbatches in flight, and d up to (f+b)/2 adds nothing.
//
// The steps of all ranks are one sequence, in which a message is one step of two ranks. So ranks
// never deadlock, even if a send ends only when it is received and each rank does one thing at a
// time. A rank receives the messages of another rank in the order in which they are sent.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vfm::train {

/// The ranks of a pipeline, the chunks of layers of each, and for vpp = 1 the additional
/// microbatches in flight at each boundary, which hide the time of messages.
struct PipelineShape {
  int pp = 1, vpp = 1, ahead = 0;
  int chunks() const { return pp * vpp; }
};

/// The cost of a microbatch on one rank, all its chunks together, in any unit of time.
struct MicrobatchCost {
  double forward = 1, backward = 2;
};

struct PipelineStep {
  enum class Kind {
    forward,
    backward,
    send_stream,       ///< output of the chunk, to the rank `peer` with the next chunk
    receive_stream,    ///< input of the chunk, from the rank `peer` with the chunk before
    send_gradient,     ///< gradient of the chunk's input, to the rank `peer` with the chunk before
    receive_gradient,  ///< gradient of the chunk's output, from the rank `peer` with the next chunk
  };
  Kind kind = Kind::forward;
  int chunk = 0;  ///< number of the chunk on this rank
  std::size_t microbatch = 0;
  int peer = -1;  ///< -1: no message

  bool operator==(const PipelineStep&) const = default;
};

struct PipelineSchedule {
  std::vector<std::size_t> order;  ///< order in which microbatches enter
  std::vector<std::vector<PipelineStep>> ranks;
  double makespan = 0;  ///< length of the step if messages take no time
};

/// The schedule of microbatches in the given order. Throws Error for an impossible shape or cost.
PipelineSchedule schedule_in_order(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs);

/// The schedule in an order that makes the step short. It has the given order unless a search finds
/// a shorter step, so microbatches of equal cost keep theirs. The search has fixed random numbers.
PipelineSchedule schedule_pipeline(const PipelineShape& shape,
                                   std::span<const MicrobatchCost> costs);

}  // namespace vfm::train
