// Attention in space and time of tokens that ranks of context parallelism share, parts of which end
// at frames (`parallel.hybrid`).
//
// Between layers a rank has whole frames (frame_plan.h), so attention within frames exchanges
// nothing. Full attention does as cp_kind says. Attention within pixels has whole pixels: the
// normed tokens, the temporal layer's input, move from the ranks of their frames to those of their
// pixels, one all-to-all, and so does what comes out of its last matrix, back. What Ulysses sends
// for one attention is queries, keys, values and the result: four times the width; this is twice,
// and nothing for frames. With tensor parallelism a token goes to the rank that has the same place
// along tp, so each sends its own tokens alone.
// In backward each all-to-all is the other's; the first runs again where the layer's input is
// recomputed, both where blocks are. With even parts each sends (c-1)/c S/c D/t elements a rank, c
// ranks of cp, t of tp.
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

/// What moves, from a rank's own tokens between sub-layers to those of its pixels. Of tokens that
/// go the same way the order is the pack's.
struct PixelMove {
  PixelMove(const nn::FramePlan& plan, const nn::NetworkLayout& layout);

  std::vector<std::int32_t> sorted;    ///< own tokens by the rank of cp that they go to
  std::vector<std::int64_t> to, from;  ///< tokens, by rank of cp; of this place along tp
  std::vector<std::int64_t> tp_rows;   ///< tokens of this rank's pixels that each rank of tp gets
  std::vector<std::int32_t> order;     ///< those of all ranks of tp in a row, in pixel order
  std::vector<std::int32_t> pixels;    ///< the pack's rows of this rank's pixels, in that order
};

/// Of a hybrid: attention of this rank's frames and pixels. Angles [S, K / 2] are of the pack.
SpaceTimePacks space_time_packs(const nn::FramePlan& plan, const PixelMove& move,
                                const ops::RotaryAngles& angles, int heads, int head_dim,
                                const nn::NetworkLayout& layout, Device device);
/// This rank's own tokens to all of its pixels' in pixel order; the adjoint is the way back.
ops::Exchange to_pixels(const PixelMove& move, const nn::NetworkLayout& layout, Device device);

}  // namespace vfm::models
