// A pack of samples as a diffusion network's layers read it: token grids, who attends to whom,
// which token belongs to which sample. Where ranks share the network, what a rank has of it. For
// the networks of this folder. Shape letters: S tokens of the pack, R samples.
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

/// The work of a token in a block with attention within frames and within pixels.
nn::FrameWork frame_work(const NetworkConfig& config, bool queries_stay);
/// Plans who has which frames and pixels of samples of these token grids.
nn::FramePlan plan_frames(const NetworkConfig& config, const std::vector<ops::TokenGrid>& grids,
                          const nn::NetworkLayout& layout);
/// The rows of a pack that are this rank's between sub-layers.
std::vector<ops::RowRange> own_rows(const NetworkConfig& config,
                                    const std::vector<ops::TokenGrid>& grids,
                                    const nn::NetworkLayout& layout);

struct NetworkPack {
  NetworkPack(const NetworkConfig& config, const NetworkBatch& batch, Device device,
              const nn::NetworkLayout& layout = {});

  std::vector<ops::PatchGrid> patches;  ///< latent sizes
  std::vector<ops::TokenGrid> grids;    ///< sizes in tokens
  Tensor times, rates;                  ///< [R] on the device: c_noise, and frames a second
  ops::AttentionPack self, cross;       ///< of this rank's heads and queries; ready on the device
  std::optional<nn::FramePlan> frames;  ///< of a hybrid
  std::optional<nn::TokenShard> shard;  ///< where ranks share the pack
  std::int64_t tokens = 0;              ///< S, of all ranks
  ops::RowMap rows;                     ///< sample of each token between sub-layers
};

}  // namespace vfm::models
