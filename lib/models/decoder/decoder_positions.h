// Where the tokens of a pack of codes are: their rotary angles, and absolute positions. For this
// folder. Shape letters: S tokens of the pack, N of some of them, K head dim, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/decoder/decoder_config.h"
#include "ops/pointwise/row_ranges.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Of every token, [S, K / 2]; the start token, which reads no code, is where the first code is.
ops::RotaryAngles token_angles(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                               Device device);

/// Of the tokens in `rows`, [N, D] f32: sinusoids of frame, row and column, which have the parts of
/// the width that they have of a head, each as sines and then cosines of 10000^(-2 i / part),
/// rounded to bf16, as Cosmos-1.0 has them. The start token has zeros. Source: cosmos-predict1,
/// SinCosPosEmbAxisTE.
Tensor absolute_positions(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                          const std::vector<ops::RowRange>& rows, Device device);

}  // namespace vfm::models
