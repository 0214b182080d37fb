// GELU: in its exact form, x * Phi(x), with which Cosmos was trained, or as an approximation with
// tanh, with which Wan was. text_activations.h has the formulas.
// Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/pointwise/gelu_kind.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x has any shape, f32 or bf16. Keeps only x for backward. Throws Error for Gelu::quick, which has
/// no gradient here.
Tensor gelu(Tape& tape, const Tensor& x, Gelu kind = Gelu::erf);

}  // namespace vfm::ops
