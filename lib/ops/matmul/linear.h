// The linear layer y = x W^T (+ b), with W stored as in PyTorch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/low_rank.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Returns y [N, O] of dtype `out` for x [N, I] and w [O, I] with its adapters and bias. x and w
/// have the same dtype, f32 or bf16; `out` is f32, or bf16 if they are. The weight's gradient is
/// summed in f32, directly into the buffer of a watched w. A weight that is not watched, as under
/// adapters, gets no gradient.
Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w, DType out);

/// linear() in x's dtype.
Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w);

/// linear() with `bias`, which may be undefined, in place of that of w.
Tensor linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Tensor& bias, DType out);

}  // namespace vfm::ops
