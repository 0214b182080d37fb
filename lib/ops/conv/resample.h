// Halving and doubling a video, in space and in time, without weights: what stands beside the
// convolutions where a causal video network changes its resolution.
//
// Shape letters: T frames, H rows, W columns, C channels. f32 or bf16, channels last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x [T, H, W, C] -> [T, H / 2, W / 2, C]: the mean of 2 x 2 pixels. H and W are even.
Tensor pool_space(Tape& tape, const Tensor& x);

/// The mean of the last two of the three frames that conv_time with stride 2 sees: x [2 + T, H, W,
/// C], with its lead -> [(T + 1) / 2, H, W, C].
Tensor pool_time(Tape& tape, const Tensor& x);

/// x [T, H, W, C] -> [T, 2 H, 2 W, C]: each pixel four times.
Tensor repeat_space(Tape& tape, const Tensor& x);

/// Each frame twice, but with `start` the first once, and the lead in front: [2 T, H, W, C], or
/// [2 T - 1, ...], and the lead's frames.
Tensor repeat_time(Tape& tape, const Tensor& x, bool start, const Lead& lead);

}  // namespace vfm::ops
