// Linear layers that recompute their elementwise input in the backward pass instead of keeping it:
// "elementwise" recompute. Values and gradients equal those of the two separate ops, to the last
// bit. This saves the memory of the input, [S, D] of a norm or [S, 4 D] of an MLP. A bias is added
// after the exchange, as in ops/matmul/exchanged_linear.h.
// Shape letters: S tokens, D width, M outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/norm/modulate.h"
#include "ops/pointwise/activation_kind.h"
#include "ops/tape.h"

namespace vfm::ops {

struct ModulatedLinear {
  Tensor stream;  ///< [S, D] f32, as from gated_residual_layernorm_modulate
  Tensor y;       ///< [S, M] in the dtype input.out: linear(normed, w)
};

/// gated_residual_layernorm_modulate, then `exchange` of `normed`, then linear with w [M, D] of the
/// dtype input.out. Backward runs the exchange again. Both use chunks if the exchange has them
/// (ops/matmul/exchanged_linear.h).
ModulatedLinear modulate_linear(Tape& tape, const ModulateInput& input, const LinearWeight& w,
                                const Exchange& exchange = {});

/// An activation, then linear, then `sum`, in chunks if it has them. x [S, D] and w [M, D] have
/// the same dtype.
Tensor activated_linear(Tape& tape, const Tensor& x, const LinearWeight& w, ActivationKind kind,
                        const Exchange& sum = {});

/// swiglu, then linear, then `sum` as in activated_linear. x [S, 2 D] and w [M, D] have the same
/// dtype. y has dtype `out` as in linear().
Tensor swiglu_linear(Tape& tape, const Tensor& x, const LinearWeight& w, DType out,
                     const Exchange& sum = {});

/// rmsnorm, cast to w's dtype, then `exchange` as in modulate_linear, then linear. x [S, D] and
/// weight [D] are f32, w is [M, D], y has w's dtype.
Tensor rmsnorm_linear(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon,
                      const LinearWeight& w, const Exchange& exchange = {});

/// The same with layer_norm. Its bias [D] f32 is that of the norm, not of w.
Tensor layer_norm_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         float epsilon, const LinearWeight& w, const Exchange& exchange = {});

}  // namespace vfm::ops
