// Attention in space and time if ranks of context parallelism share the tokens and each has whole
// frames (`parallel.hybrid`).
//
// Between layers a rank has whole frames (nn/frame_plan.h), so attention within frames exchanges
// nothing. Full attention exchanges as cp_kind says. Attention within pixels needs whole pixels.
// One all-to-all moves the temporal layer's input, the normed tokens, from the ranks of their
// frames to the ranks of their pixels. Another moves the output of the layer's last matrix back.
// Ulysses sends queries, keys, values and the result for each attention, four times the width. This
// sends twice the width for attention within pixels, and nothing for attention within frames. With
// tensor parallelism a token goes to the rank that has the same place along tp, so each rank sends
// only its own tokens. In backward each all-to-all becomes the other. The first runs again if the
// layer's input is recomputed; both run again if blocks are. With even parts each all-to-all sends
// (c-1)/c S/c D/t elements a rank, for c ranks of cp and t ranks of tp.
// Source: NVIDIA, "Training video foundation models with NeMo" (2025), section 4.4.
// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/dit/stdit.h"
#include "nn/frame_plan.h"
#include "nn/network_layout.h"

namespace vfm::models {

/// The move from the tokens that a rank has between sub-layers to the tokens of its pixels. Tokens
/// between the same two ranks keep the pack's order.
struct PixelMove {
  PixelMove(const nn::FramePlan& plan, const nn::NetworkLayout& layout);

  std::vector<std::int32_t> sorted;    ///< own tokens, sorted by the rank of cp that they go to
  std::vector<std::int64_t> to, from;  ///< numbers of tokens by rank of cp, at this place along tp
  std::vector<std::int64_t> tp_rows;   ///< number of these pixels' tokens that each rank of tp gets
  std::vector<std::int32_t> order;     ///< rows of the tokens that tp's ranks got, in pixel order
  std::vector<std::int32_t> pixels;    ///< the pack's rows of this rank's pixels, in pixel order
};

/// Returns the packs of a hybrid, for attention over this rank's frames and pixels. The angles [S,
/// K / 2] are those of the whole pack.
SpaceTimePacks space_time_packs(const nn::FramePlan& plan, const PixelMove& move,
                                const ops::RotaryAngles& angles, int heads, int head_dim,
                                const nn::NetworkLayout& layout, Device device);
/// Returns the exchange from this rank's own tokens to all tokens of its pixels, in pixel order.
/// Its adjoint moves tokens back.
ops::Exchange to_pixels(const PixelMove& move, const nn::NetworkLayout& layout, Device device);

}  // namespace vfm::models
