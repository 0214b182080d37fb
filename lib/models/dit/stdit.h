// ST-DiT, the diffusion transformer in space and time (`model.type: stdit`).
//
// It is the transformer of models/dit/dit.h with three self-attentions in a block instead of one.
// Each sub-layer has its own AdaLN-LoRA modulation, projection and per-head norms. A block updates
// the tokens x, with the text c, in this order:
//
//   x += gate * SpatialAttention(modulate(LN(x)))     a token sees the tokens of its frame
//   x += gate * FullAttention(modulate(LN(x)))        a token sees all tokens of its sample
//   x += gate * CrossAttention(modulate(LN(x)), c)    a token sees its sample's text
//   x += gate * TemporalAttention(modulate(LN(x)))    a token sees its pixel (patch) in all frames
//   x += gate * MLP(modulate(LN(x)))
//
// The learned positions are added before the first sub-layer. All three self-attentions rotate
// queries and keys by the same 3D rotary angles. Only differences of positions matter, so the
// temporal part cancels within a frame, and the spatial part within a pixel. In an image, temporal
// attention sees only the token itself. Parameters have the names of the diffusion transformer,
// with attn_spatial, norm_spatial, attn_temporal and norm_temporal beside attn1 and norm1. Sources:
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

/// The tokens that a token's self-attention sees: those of its sample, its frame or its pixel.
enum class Reach { sample, frame, pixel };

/// A pack's tokens, regrouped for attention within frames and within pixels. In the pack they stand
/// frame by frame and row by row.
struct SpaceTimePacks {
  ops::AttentionPack frames;  ///< each frame of each sample is one sequence; the order stays
  ops::AttentionPack pixels;  ///< each place of each sample is one sequence, in pixel_order
  ops::RowOrder pixel_order;
  ops::RotaryAngles pixel_angles;  ///< of the tokens in pixel_order
};
/// Fills in both packs. Their query lengths must be set.
void prepare(SpaceTimePacks& packs, int heads, int head_dim, Device device);
/// Returns the packs for samples of these token grids, ready on `device`.
SpaceTimePacks space_time_packs(const std::vector<ops::TokenGrid>& grids, int heads, int head_dim,
                                Device device);
/// Returns the exchange that runs `before` and then puts the rows of all tokens into pixel order.
ops::Exchange in_pixel_order(const ops::Exchange& before, const ops::RowOrder& order);

}  // namespace vfm::models
