// What makes one vector of the tokens of a SigLIP: a head in which one learnt query, the probe,
// attends to all patches of a picture.
//
//   x = post_layernorm(what comes out of the layers)
//   h = attention(probe, x, x)
//   vector = h + W2 gelu(W1 layernorm(h) + b1) + b2
//
// Shape letters: N pictures, T tokens of a picture, D width.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/encoder/picture_tower.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Of all SigLIPs but for the sizes of pictures and patches. Throws Error{usage}, also where
/// config.json says that there is no head.
PictureTowerConfig siglip_config(const HfComponent& folder, int image_size);

/// Every tensor of the head and of the layers, for check_tensors().
std::vector<TensorTarget> siglip_targets(const PictureTowerConfig& config);

/// x [N T, D], f32, of pictures that have `tokens` each: [N, D].
Tensor siglip_head(ops::Tape& tape, const Tensor& x, std::int64_t tokens,
                   const PictureTowerConfig& config, const TowerWeights& weights);

}  // namespace vfm::models
