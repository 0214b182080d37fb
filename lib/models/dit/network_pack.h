// A pack of samples as a diffusion network's layers read it: token grids, which tokens attend to
// which, and the sample of each token. If ranks share the network, also this rank's part of the
// pack. For the implementations of networks. Shape letters: S tokens of the pack, R samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "models/dit/network.h"
#include "nn/token_shard.h"
#include "ops/attention/attention.h"
#include "ops/conv/patchify.h"
#include "ops/norm/row_map.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Returns the work of a token in a block with attention within frames and within pixels.
nn::FrameWork frame_work(const NetworkConfig& config, bool queries_stay);
/// Plans which rank has which frames and pixels of samples with these token grids.
nn::FramePlan plan_frames(const NetworkConfig& config, const std::vector<ops::TokenGrid>& grids,
                          const nn::NetworkLayout& layout);
/// Returns the rows of a pack that this rank has between sub-layers.
std::vector<ops::RowRange> own_rows(const NetworkConfig& config,
                                    const std::vector<ops::TokenGrid>& grids,
                                    const nn::NetworkLayout& layout);

struct NetworkPack {
  NetworkPack(const NetworkConfig& config, const NetworkBatch& batch, Device device,
              const nn::NetworkLayout& layout = {});

  std::vector<ops::PatchGrid> patches;  ///< sizes of the latents
  std::vector<ops::TokenGrid> grids;    ///< sizes in tokens
  /// c_noise of the samples, on the device: [R], or [R + 1] with a 0 at the end for clean frames.
  Tensor times;
  Tensor rates;                         ///< [R] on the device: frames per second
  ops::AttentionPack self, cross;       ///< for this rank's heads and queries; ready on the device
  std::optional<nn::FramePlan> frames;  ///< only in a hybrid
  std::optional<nn::TokenShard> shard;  ///< only if ranks share the pack
  bool round_embedding = false;         ///< NetworkBatch::round_embedding
  std::int64_t tokens = 0;              ///< S, the tokens of all ranks
  ops::RowMap rows;                     ///< of `times`, for this rank's tokens between sub-layers
};

}  // namespace vfm::models
