// The linear layer y = x W^T (+ b), W stored as PyTorch stores it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/low_rank.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x [N, I], w [O, I], bias [O] (f32) or undefined: y [N, O] of dtype `out`. x and w have one
/// dtype, f32 or bf16; `out` is f32, or bf16 if they are. The weight's gradient is summed in f32,
/// directly into the buffer of a watched w; one that is not watched, as under adapters, has none.
Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Tensor& bias, DType out);

/// Without bias, in x's dtype.
Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w);

}  // namespace vfm::ops
