// SwiGLU, silu(a) b of two projections that stand beside each other: the activation of Llama's MLP.
// Source: Shazeer, "GLU variants improve transformer" (2020).
// Shape letters: N rows, F hidden width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x [N, 2 F], a before b in a row, f32 or bf16; returns [N, F] of the same dtype. Keeps x for
/// backward, nothing else.
Tensor swiglu(Tape& tape, const Tensor& x);

}  // namespace vfm::ops
