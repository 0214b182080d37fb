// SwiGLU, silu(a) b for two projections in one matrix: the activation of Llama's MLP.
// Source: Shazeer, "GLU variants improve transformer" (2020).
// Shape letters: N rows, F hidden width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x is [N, 2 F], f32 or bf16; a row holds a, then b. Returns [N, F] of the same dtype. Keeps
/// only x for backward.
Tensor swiglu(Tape& tape, const Tensor& x);

}  // namespace vfm::ops
