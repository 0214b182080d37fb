// Attention within each frame with one wide head, as in the middle of autoencoders: every pixel
// attends to all pixels of its frame, softmax(q k^T / sqrt(C)) v.
//
// Heads may have any width. ops/attention/attention.h is for narrow heads and long sequences and
// never stores scores. This op stores the scores of some rows of one frame at a time, in f32, and
// uses matrix products for the rest; backward recomputes the scores. Shape letters: T frames, N
// pixels of the queries, M pixels of the keys, C channels. M differs from N if the queries are from
// a part of the picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// For queries from a part of the picture: the index of the first query, and the number of pixels
/// in the whole picture. `whole` is 0 if the queries are the whole picture.
struct FramePart {
  std::int64_t first = 0, whole = 0;
};

/// Returns a tensor like q. q is [T, ..., C] with N pixels a frame, k and v are [T, ..., C] with M;
/// f32 or bf16. Deterministic; a frame's result does not depend on the number of frames. On the CPU
/// the result for a part has the same bits as for the whole picture, because products run over the
/// same rows, some of them unused. A part has no gradients: throws Error if the tape records.
Tensor frame_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                       const FramePart& part = {});

}  // namespace vfm::ops
