// Pixels to patches and back with the Haar wavelet: p x p x p pixels become p^3 bands, exactly.
//
// A level splits the video into eight bands of half the size, along time, then rows, then columns.
// Each direction has a sum (low) and a difference (high). The bands are in the order lll, llh, lhl,
// lhh, hll, hlh, hhl, hhh (time, row, column). The index of the band varies slowest, the channel of
// the previous level fastest. Analysis divides by 8 at each level, so a low band is a mean;
// synthesis does not scale. The first frame of a video counts as p equal frames, so 1 + k p frames
// give 1 + k.
// Source: the patcher of NVIDIA's Cosmos tokenizer ("haar"). Its filters (1, 1) / sqrt(2) and (1,
// -1) / sqrt(2) in three directions and its factor 1 / sqrt(8) amount to the same.
// Shape letters: T H W pixels, C colours, t h w patches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Returns [t, h, w, C p^3] of dtype `out` for pixels [T, H, W, C] f32. With `start`, T is 1 + k p
/// and the first frame counts p times; without, T is k p. p is a power of two; H and W are
/// multiples of p.
Tensor haar_analysis(Tape& tape, const Tensor& pixels, int patch, bool start, DType out);

/// Returns pixels [T, H, W, C] f32 for bands [t, h, w, C p^3], f32 or bf16. With `start`, only the
/// last of the first p frames is kept: T = 1 + (t - 1) p.
Tensor haar_synthesis(Tape& tape, const Tensor& bands, int patch, bool start);

}  // namespace vfm::ops
