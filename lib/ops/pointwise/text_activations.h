// The activations of text encoders, in place and without gradient, for inference.
//
//   relu(x)        max(x, 0)
//   tanh gelu      x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))   "gelu_new",
//                                                                      "gelu_pytorch_tanh"
//   gelu           x / 2 (1 + erf(x / sqrt(2)))                        "gelu"
//   quick gelu     x / (1 + exp(-1.702 x))                             "quick_gelu"
//   squared relu   max(x, 0)^2                                         "relu2"
//
// The names in quotes are from Hugging Face's configs. Each gelu of minus infinity is NaN. Sources:
// Hendrycks and Gimpel, "Gaussian error linear units" (2016), for the three gelus; So et al.,
// "Primer" (2021), for squared ReLU; Shazeer, "GLU variants improve transformer" (2020), for
// gated_gelu_in_place().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/pointwise/activation_kind.h"
#include "ops/tape.h"

namespace vfm::ops {

// All take any shape, f32 or bf16. NaN stays NaN. They throw Error if the tape records.

/// x = relu(x).
void relu_in_place(Tape& tape, const Tensor& x);

/// x = activation(x). On the CPU it has the bits of activate() (ops/pointwise/activation.h).
void activate_in_place(Tape& tape, const Tensor& x, ActivationKind kind);

/// x = gelu(x) factor, with the tanh gelu. Both have the same dtype and number of elements.
void gated_gelu_in_place(Tape& tape, const Tensor& x, const Tensor& factor);

}  // namespace vfm::ops
