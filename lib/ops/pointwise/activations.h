// The activations of networks.
//
//   silu(x)        x / (1 + exp(-x))                                   of the time embedding
//   swiglu(a, b)   silu(a) b                                           of Llama's MLP
//   relu(x)        max(x, 0)
//   tanh gelu      x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))   of Wan; "gelu_new",
//                                                                      "gelu_pytorch_tanh"
//   gelu           x / 2 (1 + erf(x / sqrt(2)))                        of Cosmos; "gelu"
//   quick gelu     x / (1 + exp(-1.702 x))                             "quick_gelu"
//   squared relu   max(x, 0)^2                                         "relu2"
//
// The names in quotes are from Hugging Face's configs. Each gelu of minus infinity is NaN. Sources:
// Hendrycks and Gimpel, "Gaussian error linear units" (2016), for the three gelus; So et al.,
// "Primer" (2021), for squared ReLU; Shazeer, "GLU variants improve transformer" (2020).
// Shape letters: N rows, F hidden width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/pointwise/activation_kind.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x has any shape, f32 or bf16. Keeps only x for backward. Throws Error for quick GELU, which has
/// no gradient here.
Tensor activate(Tape& tape, const Tensor& x, ActivationKind kind);

/// x has any shape, f32.
Tensor silu(Tape& tape, const Tensor& x);

/// x is [N, 2 F], f32 or bf16; a row holds a, then b. Returns [N, F] of the same dtype. Keeps
/// only x for backward.
Tensor swiglu(Tape& tape, const Tensor& x);

// In place and without gradient, for inference. All take any shape, f32 or bf16. NaN stays NaN.
// They throw Error if the tape records.

/// x = relu(x).
void relu_in_place(Tape& tape, const Tensor& x);

/// x = activation(x). On the CPU it has the bits of activate().
void activate_in_place(Tape& tape, const Tensor& x, ActivationKind kind);

/// x = gelu(x) factor, with the tanh gelu. Both have the same dtype and number of elements.
void gated_gelu_in_place(Tape& tape, const Tensor& x, const Tensor& factor);

}  // namespace vfm::ops
