// The positions of the tokens of a pack of codes: rotary angles, and absolute positions. For this
// folder. Shape letters: S tokens of the pack, N tokens of `rows`, K head dim, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/decoder/decoder_config.h"
#include "ops/pointwise/row_ranges.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Returns the angles of every token, [S, K / 2]. The start token has the position of the first
/// code.
ops::RotaryAngles token_angles(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                               Device device);

/// Returns the absolute positions of the tokens in `rows`, [N, D] f32, as in Cosmos-1.0. The width
/// is split into parts for frame, row and column, in the same proportions as a head's width. Each
/// part has the sines and then the cosines of position * 10000^(-2 i / part). Values are rounded to
/// bf16. The start token has zeros. Source: cosmos-predict1, SinCosPosEmbAxisTE.
Tensor absolute_positions(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                          const std::vector<ops::RowRange>& rows, Device device);

}  // namespace vfm::models
