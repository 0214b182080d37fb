// Changes the resolution of a video in space and in time, without weights: halving and doubling
// next to the convolutions of a causal video network, and the shortcuts around such a change in
// Wan's newer autoencoder, where pixels of a patch become channels, of which means are taken, and
// channels become pixels, repeated.
//
// A patch of the shortcuts has `frames` frames of `space` x `space` pixels, F pixels in all. Number
// the values of a patch with c channels by (channel, frame, row, column), the column fastest:
//
//   pool_patches    coarse[o] = mean of the values o g ... o g + g - 1 of the patch, g = c F / O
//   repeat_patches  value i of the patch = coarse[i / g], rounded down, g = c F / O
//
// Shape letters: T frames, H rows, W columns, C channels, O channels of the coarse picture. f32 or
// bf16, channels last.
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

// The shortcuts work on one frame of the patches at a time, so that a video may come frame by
// frame. Without gradients, for inference.

struct PatchShape {
  int frames = 1, space = 1;
  std::int64_t pixels() const { return std::int64_t{frames} * space * space; }
};

/// Adds what frame `frame` of the patches gives to the means: fine [H, W, C], coarse [H / space,
/// W / space, O]. For frame 0 coarse is overwritten. Throws Error if O does not divide C F.
void pool_patches(const Tensor& fine, const Tensor& coarse, const PatchShape& patch, int frame);

/// Writes frame `frame` of the patches: coarse [H / space, W / space, O], fine [H, W, C]. Throws
/// Error if O does not divide C F.
void repeat_patches(const Tensor& coarse, const Tensor& fine, const PatchShape& patch, int frame);

}  // namespace vfm::ops
