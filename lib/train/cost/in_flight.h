// The memory that a rank of a pipeline keeps of a microbatch in flight, and the tensors that it
// sends to the next stage, measured by the forward pass of its chunks on Device::meta
// (tensor/meta.h).
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/cost/step_work.h"

namespace vfm::train {

/// A chunk between forward and backward of a microbatch.
struct ChunkInFlight {
  double kept = 0;    ///< bytes of the device's memory
  double pinned = 0;  ///< bytes of the host's pinned memory ('model.offload')
  /// The tensors that go to the next chunk, each a message; none of the last chunk.
  SentMessages sent;
};

/// A microbatch on one rank.
struct InFlight {
  double batch = 0;                   ///< bytes of the samples
  std::vector<ChunkInFlight> chunks;  ///< in order
};

/// The arguments are those of step_work(); the packs that go through the network together are each
/// like `pack`. `recipe` does not have 'parallel.shard' full: gathered blocks are of no microbatch.
InFlight in_flight(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                   const std::vector<data::Entry>& pack, int rank);

}  // namespace vfm::train
