// f32 weights in two arrays of 16 bits, so that the bf16 weight which the network computes with
// costs no memory of its own.
//
//   bits(w) = (high << 16) + low      high: w rounded to the nearest bf16, ties away from zero
//                                     low: what it lacks, a signed number
//
// No precision is lost; a NaN becomes the plain one. ops/optim/adamw.h updates such weights in
// place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// weights f32; high bf16 and low i16 of as many elements, all on one device.
void split_master(const Tensor& weights, const Tensor& high, const Tensor& low);
void join_master(const Tensor& high, const Tensor& low, const Tensor& weights);

}  // namespace vfm::ops
