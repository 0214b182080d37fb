// The head that makes one vector of the tokens in SigLIP: one learnt query, the probe, attends to
// all patches of a picture.
//
//   x = post_layernorm(output of the layers)
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

/// The configuration of any SigLIP tower. `image_size` is used if the file has none. Throws
/// Error{usage}, also if config.json says that the head is missing.
PictureTowerConfig siglip_config(const HfComponent& folder, int image_size);

/// All tensors of the head and of the layers, for check_tensors().
std::vector<TensorTarget> siglip_targets(const PictureTowerConfig& config);

/// x [N T, D], f32, of pictures with `tokens` tokens each. Returns [N, D].
Tensor siglip_head(ops::Tape& tape, const Tensor& x, std::int64_t tokens,
                   const PictureTowerConfig& config, const TowerWeights& weights);

}  // namespace vfm::models
