// Layer norm over the last dimension: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias.
//
// The variance divides by D, not by D - 1. Mean and variance stay exact if the mean is far larger
// than the deviation: the mean is computed in two passes, and the variance from distances to the
// mean. A row of equal numbers gives exactly the bias. NaN or infinity makes its whole row NaN, and
// no other row.
// The norm without weight and bias is that of ops/norm/modulate.h with a modulation of zeros.
// Sources: Ba, Kiros and Hinton, "Layer normalization" (2016); Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance" (1983), for the passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x is [N, D], weight and bias are [D], all f32. Deterministic: gradients of weight and bias are
/// sums over fixed chunks of rows, added in order. Throws Error if sizes or types do not fit.
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon);

}  // namespace vfm::ops
