// ST-DiT, the diffusion transformer in space and time (`model.type: stdit`).
//
// It is the transformer of models/dit/dit.h with three self-attentions a block in place of one. A
// block of tokens x (text c, conditioning e), in this order, each line a sub-layer with an
// AdaLN-LoRA modulation, a projection and per-head norms of its own:
//
//   x += gate * SpatialAttention(modulate(LN(x)))     a token sees the tokens of its frame
//   x += gate * FullAttention(modulate(LN(x)))        of its sample
//   x += gate * CrossAttention(modulate(LN(x)), c)    its sample's text
//   x += gate * TemporalAttention(modulate(LN(x)))    its pixel (patch) in all frames
//   x += gate * MLP(modulate(LN(x)))
//
// The learned positions are added before the first of them. All three self-attentions turn queries
// and keys by the same 3D rotary angles: only differences of positions matter, so within a frame
// the temporal part falls away by itself, and within a pixel the spatial one. Of an image, the
// temporal attention sees the token alone. Names are those of the diffusion transformer, and
// attn_spatial, norm_spatial, attn_temporal and norm_temporal beside attn1 and norm1. Sources:
// NVIDIA, "Training video foundation models with NeMo" (2025), section 4.4, for the three kinds in
// a block; Zheng et al., "Open-Sora" (2024).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/attention/attention.h"
#include "ops/exchange.h"
#include "ops/pointwise/row_order.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Whom a token's self-attention sees.
enum class Reach { sample, frame, pixel };

/// A pack's tokens, which stand frame by frame and row by row, regrouped for attention within
/// frames and within pixels.
struct SpaceTimePacks {
  ops::AttentionPack frames;  ///< each frame of each sample is one sequence; the order stays
  ops::AttentionPack pixels;  ///< each place of each sample is one, of tokens in pixel_order
  ops::RowOrder pixel_order;
  ops::RotaryAngles pixel_angles;  ///< in that order
};
/// What both packs have beside the queries' lengths.
void prepare(SpaceTimePacks& packs, int heads, int head_dim, Device device);
/// For samples of these token grids, ready on `device`.
SpaceTimePacks space_time_packs(const std::vector<ops::TokenGrid>& grids, int heads, int head_dim,
                                Device device);
/// Of all tokens' rows those in pixel order, after `before`.
ops::Exchange in_pixel_order(const ops::Exchange& before, const ops::RowOrder& order);

}  // namespace vfm::models
