// Attention along time with one wide head: each pixel of a frame to the same pixel of that frame
// and all before it, softmax(q k^T / sqrt(C)) v.
//
// Keys and values come in pieces, so that those of frames worked on earlier can be kept as they
// were.
// Shape letters: T frames of the queries, L >= T of the keys, N pixels, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// Pieces in the order of time, each [frames, ..., C], of one dtype.
struct TimeKeys {
  std::vector<Tensor> keys, values;
};

/// q [T, ..., C]; the last T frames of the keys are its own: query t sees keys 0 to L - T + t. The
/// result is as q. f32 or bf16; on the GPU at most 1,024 channels. Gradients flow into keys and
/// values of one piece (L = T) only; throws Error if a tape would record others.
Tensor time_attention(Tape& tape, const Tensor& q, const TimeKeys& pieces);

}  // namespace vfm::ops
