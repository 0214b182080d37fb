// The shortcuts without weights around a change of resolution in Wan's newer autoencoder: pixels of
// a patch become channels, of which means are taken, and channels become pixels, repeated.
//
// A patch has `frames` frames of `space` x `space` pixels, F pixels in all. Number the values of a
// patch with c channels by (channel, frame, row, column), the column fastest:
//
//   pool_patches    coarse[o] = mean of the values o g ... o g + g - 1 of the patch, g = c F / O
//   repeat_patches  value i of the patch = coarse[i / g], rounded down, g = c F / O
//
// Both work on one frame of the patches at a time, so that a video may come frame by frame. Without
// gradients, for inference.
// Shape letters: H rows, W columns and C channels of the fine picture, O channels of the coarse
// one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

struct PatchShape {
  int frames = 1, space = 1;
  std::int64_t pixels() const { return std::int64_t{frames} * space * space; }
};

/// Adds what frame `frame` of the patches gives to the means: fine [H, W, C], coarse [H / space,
/// W / space, O], f32 or bf16. For frame 0 coarse is overwritten. Throws Error if O does not divide
/// C F.
void pool_patches(const Tensor& fine, const Tensor& coarse, const PatchShape& patch, int frame);

/// Writes frame `frame` of the patches: coarse [H / space, W / space, O], fine [H, W, C]. Throws
/// Error if O does not divide C F.
void repeat_patches(const Tensor& coarse, const Tensor& fine, const PatchShape& patch, int frame);

}  // namespace vfm::ops
