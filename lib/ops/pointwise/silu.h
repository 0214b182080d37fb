// SiLU, x * sigmoid(x): the activation of the time embedding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x has any shape, f32.
Tensor silu(Tape& tape, const Tensor& x);

}  // namespace vfm::ops
