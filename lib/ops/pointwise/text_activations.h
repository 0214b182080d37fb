// The activations of text encoders, in place and without gradient: for inference.
//
//   relu(x) = max(x, 0)
//   gelu_tanh(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), "gelu_new"
//
// Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016), for the approximation;
// Shazeer, "GLU variants improve transformer" (2020).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

// Any shape, f32 or bf16; NaN stays NaN. They throw Error if the tape records.

/// x = relu(x).
void relu_in_place(Tape& tape, const Tensor& x);

/// x = gelu_tanh(x) factor; both of one dtype and as many elements.
void gated_gelu_in_place(Tape& tape, const Tensor& x, const Tensor& factor);

}  // namespace vfm::ops
