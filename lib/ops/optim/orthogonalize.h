// The matrix without its singular values, nearly: U V^T of U S V^T. Muon adds it to weights.
//
// Five steps of Newton-Schulz's iteration, on the matrix divided by its Frobenius norm:
//
//   X = M / (|M| + eps);  five times  A = X X^T,  X = a X + (b A + c A^2) X
//   a = 3.4445, b = -4.7750, c = 2.0315
//
// If a matrix has more rows than columns, A is X^T X, on the other side of X. The coefficients make
// small singular values grow fast; all end between 0.7 and 1.2, which trains as well as 1.
// Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// `matrix` is [M, N], f32 or bf16; so are the products' operands and the result. Sums are f32. The
/// bits depend on the matrix alone. On a GPU the host waits once, for the norm. Not recorded.
Tensor orthogonalize(const Tensor& matrix, float epsilon);

}  // namespace vfm::ops
