// How a video is cut for a tokenizer from a folder: into chunks of latent frames, so that memory
// suffices, and for ranks that decode it together, by time, by rows, or both. The functions are
// pure, so all ranks get the same result.
//
// Ranks that work on one chunk have a band of its rows each (models/cosmos/spatial_exchange.h).
// Chunks are dealt in turn to sets of such ranks (models/cosmos/time_exchange.h):
//
//   rank = band + bands * place in the turn
//
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/config.h"
#include "models/cosmos/cost.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Limits on what is processed at once.
struct CosmosRoom {
  /// Approximate number of pixels, of all frames together; at least those of one latent frame, or
  /// of a band of it.
  std::int64_t pixels = std::int64_t{1} << 20;
  double memory = 0;  ///< largest bytes of activations; 0: no limit
};

struct CosmosSplit {
  std::int64_t step = 1;  ///< latent frames of a chunk
  int bands = 1;          ///< bands of rows of a chunk, one per rank
  int turns = 1;          ///< chunks processed at the same time
  /// Number of ranks that have work.
  int ranks() const { return bands * turns; }
  std::int64_t chunks(std::int64_t frames) const { return (frames + step - 1) / step; }
  /// The part of all work that the busiest rank does, for a latent of this many frames and rows.
  double share(std::int64_t frames, std::int64_t height) const;
};

/// Chooses the split for one rank, or for `ranks` ranks that decode together. A chunk has as many
/// frames as room.pixels allows. If that exceeds room.memory, it has fewer frames, or all frames of
/// a short video, which needs no state between chunks. Rows are cut if memory does not suffice
/// otherwise, or if the busiest rank then has much less to do than with whole frames, as when there
/// are more ranks than frames. Throws Error{usage} that names the least memory needed if no split
/// fits.
CosmosSplit cosmos_split(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                         std::int64_t height, std::int64_t width, const CosmosRoom& room,
                         Device device, DType compute, int ranks = 1);

}  // namespace vfm::models
