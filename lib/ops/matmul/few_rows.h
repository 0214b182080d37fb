// Products y = x W^T (+ b) of few rows of x, as when text is generated token by token. Reading W
// takes most of the time. W is therefore read once for all rows, as stored, and widened to f32 in
// registers.
//
// The bits of a row of y do not depend on the other rows or on how many there are, so a text gets
// the same result in any batch. Each element is a sum over k in vector lanes. On the CPU its order
// depends only on the instruction set and k, on a GPU on k and the alignment of x and w. (Products
// of ops/matmul/gemm.h may sum in another order if there are more rows.)
// For inference, without a backward pass.
// Shape letters: N rows, I columns, O outputs.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// For more rows the blocked product of ops/matmul/linear.h is faster.
inline constexpr std::int64_t kFewRows = 16;

/// Returns y [N, O] f32. x is [N, I] f32. w is [O, I] in f32, bf16 or, on the CPU, f16. With
/// `scales` [O] f32, w holds the int8 codes of quantize.h as u8. bias is [O] f32. Scales and
/// bias may be undefined. Throws Error for other shapes and types.
Tensor few_rows(const Tensor& x, const Tensor& w, const Tensor& scales, const Tensor& bias);

}  // namespace vfm::ops
