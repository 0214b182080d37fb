// Splits f32 weights into two arrays of 16 bits. One of them is the bf16 weight that the network
// computes with, which therefore needs no memory of its own.
//
//   bits(w) = (high << 16) + low
//   high: w rounded to the nearest bf16, ties away from zero
//   low:  the remaining bits, a signed number
//
// The split is exact, except that every NaN becomes the default NaN. ops/optim/adamw.h updates such
// weights in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// `weights` is f32, `high` bf16 and `low` i16. All have the same number of elements and one
/// device.
void split_master(const Tensor& weights, const Tensor& high, const Tensor& low);
void join_master(const Tensor& high, const Tensor& low, const Tensor& weights);

}  // namespace vfm::ops
