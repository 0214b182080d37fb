// Root-mean-square norm over the last dimension: y = x / sqrt(mean(x^2) + eps) * weight.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x is [N, D], weight is [D]; both are f32.
Tensor rmsnorm(Tape& tape, const Tensor& x, const Tensor& weight, float epsilon);

}  // namespace vfm::ops
