// Layer norm over the last dimension: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias.
// Source: Ba, Kiros and Hinton, "Layer normalization" (2016).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x [N, D], weight [D], bias [D]; f32. The variance is that of the D numbers (not of D - 1).
/// Forward only: throws Error if the tape records.
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon);

}  // namespace vfm::ops
