// Elementwise functions: activations, sums, conversions. The CUDA versions of
// lib/ops/pointwise/activations.h and add.h, of the sums in lib/ops/matmul/low_rank.h and
// lib/ops/optim/sums.h, and of conversions between f32 and bf16.
//
//   gelu(x) = x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2      to 5e-7; not the form with tanh
//   silu(x) = x / (1 + e^-x)
//   swiglu(a, b) = silu(a) b                                     a and b beside each other in a row
//   tanh_gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//   quick_gelu(x) = x / (1 + e^(-1.702 x))
//   squared_relu(x) = max(x, 0)^2
//
// Computed in f32. bf16 results are rounded to nearest, ties to even; NaN stays NaN. Sources:
// Hendrycks and Gimpel, "Gaussian error linear units" (2016); Elfwing et al., "Sigmoid-weighted
// linear units" (2018).
//
// n counts elements. Pointers need only the alignment of an element; pointers aligned to 16 bytes
// are read and written 16 bytes at a time, with the same results. An output must not overlap an
// input, or must be an input of the same type and shape. All functions return a cudaError_t: 0 on
// success, the launch's error, or 1 (invalid value) for a size that is negative or above 2^38
// (2^31 - 1 rows). Sizes of zero do nothing.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// gelu, tanh_gelu, quick_gelu or squared_relu.
enum class ActivationKind { gelu, tanh_gelu, quick_gelu, squared_relu };

/// y = one of these functions of x. Both have `type`; y may be x.
int activation_forward(Type type, ActivationKind kind, const void* x, void* y, std::int64_t n,
                       CUstream_st* stream);

/// dx = dy times the slope of gelu, Phi(x) + x phi(x), with phi the density of the normal
/// distribution; or of tanh_gelu, s + x s (1 - s) 2u', with s = 1 / (1 + e^-2u) and
/// u = sqrt(2 / pi) (x + 0.044715 x^3); or of squared_relu, 2 max(x, 0). Unless y is null, also y
/// with the same bits as activation_forward's. All have `type`. Refuses ActivationKind::quick_gelu.
int activation_backward(Type type, ActivationKind kind, const void* x, const void* dy, void* dx,
                        void* y, std::int64_t n, CUstream_st* stream);

/// y = silu(x).
int silu_forward(const float* x, float* y, std::int64_t n, CUstream_st* stream);

/// dx = dy s (1 + x (1 - s)), s = 1 / (1 + e^-x).
int silu_backward(const float* x, const float* dy, float* dx, std::int64_t n, CUstream_st* stream);

/// y [N, F] = swiglu of the two halves of the rows of x [N, 2 F]; both have `type`.
int swiglu_forward(Type type, const void* x, void* y, std::int64_t rows, std::int64_t width,
                   CUstream_st* stream);

/// Computes dx [N, 2 F] from x and dy [N, F]; all have `type`.
int swiglu_backward(Type type, const void* x, const void* dy, void* dx, std::int64_t rows,
                    std::int64_t width, CUstream_st* stream);

/// x = max(x, 0).
int relu(Type type, void* x, std::int64_t n, CUstream_st* stream);

/// x = tanh_gelu(x) factor; both have `type`.
int gated_gelu(Type type, void* x, const void* factor, std::int64_t n, CUstream_st* stream);

/// y += x.
int add_into(Type y_type, void* y, Type x_type, const void* x, std::int64_t n, CUstream_st* stream);

/// out = a x + b y, computed in f32 and rounded once; 1 (invalid value) if both x and y are bf16.
/// `out` may be x or y if it has its type.
int scaled_sum(Type out_type, void* out, float a, Type x_type, const void* x, float b, Type y_type,
               const void* y, std::int64_t n, CUstream_st* stream);

/// y = x in the other type; 1 (invalid value) if the types are equal.
int convert(Type x_type, const void* x, Type y_type, void* y, std::int64_t n, CUstream_st* stream);

/// sum = a + the first M columns of b. a and sum are [N, M], b is [N, W] with W >= M, without gaps
/// between rows; 1 (invalid value) if W < M.
int add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                std::int64_t wide, CUstream_st* stream);

/// The gradient of b in add_columns: db [N, W] is dsum [N, M], with zeros on the right. The
/// gradient of a is dsum itself.
int add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                         std::int64_t wide, CUstream_st* stream);

/// The first M columns of y += scale x. y is [N, W], x is [N, M], both of `type` and without gaps
/// between rows, W >= M; 1 (invalid value) if W < M. y may point into a row of a matrix of W
/// columns.
int add_scaled_columns(Type type, void* y, std::int64_t wide, const void* x, std::int64_t narrow,
                       std::int64_t rows, float scale, CUstream_st* stream);

}  // namespace vfm::kernels
