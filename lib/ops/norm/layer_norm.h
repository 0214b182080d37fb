// Layer norm over the last dimension: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias.
//
// The variance is that of the D numbers (not of D - 1). Both are as exact where the mean is far
// larger than the deviation: numbers are summed as their distances from the mean, which itself is
// found in two passes. A row whose numbers are all equal gives the bias, to the bit. A NaN or an
// infinity makes its whole row NaN, and no other.
// Sources: Ba, Kiros and Hinton, "Layer normalization" (2016); Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance" (1983), for the passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x [N, D], weight [D], bias [D]; f32. Forward only: throws Error if the tape records, or where
/// sizes or types do not fit.
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon);

}  // namespace vfm::ops
