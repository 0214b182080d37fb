// GELU in its exact form, x * Phi(x), which is what Cosmos was trained with (not the tanh one).
// Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Any shape, f32 or bf16. Keeps x for backward, nothing else.
Tensor gelu(Tape& tape, const Tensor& x);

}  // namespace vfm::ops
