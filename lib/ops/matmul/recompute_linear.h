// Linear layers whose input is not kept for backward, but recomputed there, element by element:
// "elementwise" recompute. Values and gradients are those of the two ops one after the other, to
// the last bit; what is saved is the memory of the input, [S, D] of a norm or [S, 4 D] of an MLP.
// Shape letters: S tokens, D width, M outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/norm/modulate.h"
#include "ops/tape.h"

namespace vfm::ops {

struct ModulatedLinear {
  Tensor stream;  ///< [S, D] f32, as of gated_residual_layernorm_modulate
  Tensor y;       ///< [S, M]: linear(normed, w), of the dtype input.out
};

/// gated_residual_layernorm_modulate, then linear with w [M, D] of the dtype input.out. With an
/// exchange y is of what that makes of `normed`, and backward runs it again too: in parts, if it
/// can (ops/matmul/exchanged_linear.h).
ModulatedLinear modulate_linear(Tape& tape, const ModulateInput& input, const LinearWeight& w,
                                const Exchange& exchange = {});

/// gelu, then linear: x [S, D] and w [M, D] of one dtype; and then `sum`, in parts, if it can.
Tensor gelu_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& sum = {});

/// swiglu, then linear: x [S, 2 D] and w [M, D] of one dtype, y of dtype `out` as of linear; and
/// then `sum`, as gelu_linear.
Tensor swiglu_linear(Tape& tape, const Tensor& x, const LinearWeight& w, DType out,
                     const Exchange& sum = {});

/// rmsnorm, cast to w's dtype, then linear: x [S, D] and weight [D] f32, w [M, D]; y of w's dtype.
/// With an exchange as modulate_linear.
Tensor rmsnorm_linear(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon,
                      const LinearWeight& w, const Exchange& exchange = {});

}  // namespace vfm::ops
