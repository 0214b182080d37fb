// Rotary positions for some heads of each row, in place: queries and keys of a language model.
//
//   (a, b) -> (a cos - b sin, b cos + a sin)   a, b: the halves of a head ("rotate half")
//
// ops/position/qk_norm_rope.h does this after a norm, and with a gradient. Every product and sum is
// rounded separately, so the CPU and a GPU give the same bits.
// Source: Su et al., "RoFormer" (2021).
// Shape letters: N rows, K head dim.
// For inference, without a backward pass. Thread-safety: any thread; on the GPU queued on the
// compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// Rotates the first `heads` heads of each row of x [N, >= heads K] f32. cosines and sines are
/// [N, K / 2] f32. Throws Error for other shapes and types.
void turn_heads(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines);

}  // namespace vfm::ops
