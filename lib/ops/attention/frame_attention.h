// Attention with one wide head, as autoencoders have it in the middle: every pixel of a frame to
// every pixel of the same frame, softmax(q k^T / sqrt(C)) v.
//
// For heads of any width; ops/attention/attention.h, for narrow heads and long sequences, never
// stores scores. Here some rows of the scores of one frame are stored at a time, in f32, and the
// rest is matrix products; backward recomputes them. Shape letters: T frames, N pixels of the
// queries, M of the keys (of a part of the picture the queries, of all of it the keys), C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Of queries that are those of a part of the picture: the first of them, and how many the whole
/// has. 0: they are the whole's.
struct FramePart {
  std::int64_t first = 0, whole = 0;
};

/// q [T, ..., C] of N pixels a frame, k and v [T, ..., C] of M: the result is as q. f32 or bf16.
/// Deterministic; a frame's result does not depend on how many come with it. On the CPU that of a
/// part has the bits of the whole's: products are of the same rows, of which some may be of no use.
/// No gradients of a part.
Tensor frame_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                       const FramePart& part = {});

}  // namespace vfm::ops
