// Rotary positions for some heads of each row, in place: queries and keys of a language model or of
// an encoder of pictures or videos.
//
//   turn_heads       (a, b) -> (a cos - b sin, b cos + a sin)            a, b: the halves of a head
//   turn_neighbours  (a, b) -> (a cos_a - b sin_a, b cos_b + a sin_b)    a, b: neighbours
//
// Neighbours are elements 2 i and 2 i + 1 of a head. Each element has an angle of its own. The two
// angles of a pair differ in V-JEPA 2, whose weights were trained so.
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

/// The same with an angle for each element: cosines and sines are [N, K] f32. The rows of x have an
/// even number of elements, so that a GPU reads pairs.
void turn_neighbours(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines);

}  // namespace vfm::ops
