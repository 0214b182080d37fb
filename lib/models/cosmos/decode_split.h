// How a video is cut for a tokenizer from a folder: into chunks of latent frames, so that memory
// suffices, and for ranks that decode it together by time, by rows, or both. Pure functions: all
// ranks find the same.
//
// Ranks that are at one chunk have a band of its rows each (models/cosmos/spatial_exchange.h), and
// chunks are dealt to such ranks in turn (models/cosmos/time_exchange.h):
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

/// How much is worked on at once.
struct CosmosRoom {
  /// About this many pixels, of all frames together; at least those of one latent frame, or of a
  /// band of it.
  std::int64_t pixels = std::int64_t{1} << 20;
  double memory = 0;  ///< bytes of activations, at most; 0: no limit
};

struct CosmosSplit {
  std::int64_t step = 1;  ///< latent frames of a chunk
  int bands = 1;          ///< of the rows of a chunk, each on a rank
  int turns = 1;          ///< chunks that are worked on at the same time
  /// Of the ranks, those that have work.
  int ranks() const { return bands * turns; }
  std::int64_t chunks(std::int64_t frames) const { return (frames + step - 1) / step; }
  /// What the rank that has most computes of all, for a latent of so many frames and rows.
  double share(std::int64_t frames, std::int64_t height) const;
};

/// For one rank, and where it decodes for some that do it together. As many frames at once as
/// room.pixels says; where that takes more than room.memory fewer, or all of a short video, of
/// which nothing need be kept from chunk to chunk. Rows are cut where memory does not suffice
/// otherwise, or where the busiest rank has much less to do than with whole frames: where there are
/// more ranks than frames. Throws Error{usage}, with what is needed at least, where no split has
/// the memory.
CosmosSplit cosmos_split(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                         std::int64_t height, std::int64_t width, const CosmosRoom& room,
                         Device device, DType compute, int ranks = 1);

/// The step of that for one rank.
std::int64_t cosmos_step(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                         std::int64_t height, std::int64_t width, const CosmosRoom& room,
                         Device device, DType compute);

}  // namespace vfm::models
