// Attention with one wide head in video autoencoders, softmax(q k^T / sqrt(C)) v: within each
// frame, where every pixel attends to all pixels of its frame, and along time, where it attends to
// the same pixel of that frame and of all earlier frames.
//
// Heads may have any width. ops/attention/attention.h is for narrow heads and long sequences and
// never stores scores. Attention within frames stores the scores of some rows of one frame at a
// time, in f32, and uses matrix products for the rest; backward recomputes the scores.
// Keys and values along time come in pieces, so that the pieces of earlier frames can be kept
// unchanged.
// Shape letters: T frames of the queries, L >= T frames of the keys along time, N pixels of the
// queries, M pixels of the keys, C channels. M differs from N if the queries are from a part of the
// picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

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

/// Pieces in time order, each [frames, ..., C], all of one dtype.
struct TimeKeys {
  std::vector<Tensor> keys, values;
};

/// Returns a tensor like q [T, ..., C]. The last T frames of the keys are the queries' frames:
/// query t sees keys 0 to L - T + t. f32 or bf16; on a GPU at most 1,024 channels. Gradients
/// require keys and values of one piece (L = T): otherwise throws Error if the tape would record
/// them.
Tensor time_attention(Tape& tape, const Tensor& q, const TimeKeys& pieces);

}  // namespace vfm::ops
