// Attention along time with one wide head: each pixel of a frame attends to the same pixel of that
// frame and of all earlier frames, softmax(q k^T / sqrt(C)) v.
//
// Keys and values come in pieces, so that the pieces of earlier frames can be kept unchanged.
// Shape letters: T frames of the queries, L >= T frames of the keys, N pixels, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

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
