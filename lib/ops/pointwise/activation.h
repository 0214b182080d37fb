// The activation of an MLP: GELU in its exact form, x * Phi(x), with which Cosmos was trained, or
// as an approximation with tanh, with which Wan was; or squared ReLU. text_activations.h has the
// formulas.
// Sources: Hendrycks and Gimpel, "Gaussian error linear units" (2016); So et al., "Primer" (2021).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/pointwise/activation_kind.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x has any shape, f32 or bf16. Keeps only x for backward. Throws Error for quick GELU, which has
/// no gradient here.
Tensor activate(Tape& tape, const Tensor& x, ActivationKind kind);

}  // namespace vfm::ops
