// GELU in its exact form, x * Phi(x), with which Cosmos was trained (not the tanh approximation).
// Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x has any shape, f32 or bf16. Keeps only x for backward.
Tensor gelu(Tape& tape, const Tensor& x);

}  // namespace vfm::ops
