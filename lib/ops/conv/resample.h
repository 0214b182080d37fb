// Halves and doubles a video in space and in time, without weights, next to the convolutions that
// change the resolution in a causal video network.
//
// Shape letters: T frames, H rows, W columns, C channels. f32 or bf16, channels last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Means of 2 x 2 pixels: x [T, H, W, C] to [T, H / 2, W / 2, C]. H and W are even.
Tensor pool_space(Tape& tape, const Tensor& x);

/// Means of the last two of the three frames that conv_time with stride 2 uses: x [2 + T, H, W, C]
/// with its lead to [(T + 1) / 2, H, W, C].
Tensor pool_time(Tape& tape, const Tensor& x);

/// Repeats each pixel four times: x [T, H, W, C] to [T, 2 H, 2 W, C].
Tensor repeat_space(Tape& tape, const Tensor& x);

/// Repeats each frame twice, and puts the lead in front: [2 T, H, W, C] plus the lead's frames.
/// With `start` the first frame is not repeated: [2 T - 1, H, W, C] plus the lead's frames.
Tensor repeat_time(Tape& tape, const Tensor& x, bool start, const Lead& lead);

}  // namespace vfm::ops
