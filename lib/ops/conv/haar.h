// Pixels to patches and back by the Haar wavelet: p x p x p pixels become 8^log2(p) bands, exactly.
//
// A level splits the video into eight of half the size: along time, then rows, then columns, each
// into sum (low) and difference (high), in the order lll, llh, lhl, lhh, hll, hlh, hhl, hhh (time,
// row, column), band slowest and the channels of the level before fastest. Analysis divides by 8 at
// each level, so a low band is a mean; synthesis does not. The first frame of a video stands for p
// equal ones, so 1 + k p frames give 1 + k.
// Source: the patcher of NVIDIA's Cosmos tokenizer ("haar"), whose filters (1, 1) / sqrt(2) and (1,
// -1) / sqrt(2) in three directions and further 1 / sqrt(8) come to the same.
// Shape letters: T H W pixels, C colours, t h w patches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// pixels [T, H, W, C], f32 -> [t, h, w, C p^3] of dtype `out`. With `start` T is 1 + k p and the
/// first frame counts p times, else k p. p is a power of two, H and W are multiples of it.
Tensor haar_analysis(Tape& tape, const Tensor& pixels, int patch, bool start, DType out);

/// bands [t, h, w, C p^3], f32 or bf16 -> pixels [T, H, W, C], f32. With `start` only the last of
/// the first p frames is kept: T = 1 + (t - 1) p.
Tensor haar_synthesis(Tape& tape, const Tensor& bands, int patch, bool start);

}  // namespace vfm::ops
