// y = x W^T (+ b) of few rows of x, as when a text is written token by token: bound by reading W,
// which is therefore read once for all rows, as it is stored, and widened to f32 in registers.
//
// Row i of y has the same bits whatever other rows there are, and however many: each element is a
// sum over k in lanes, in an order that depends on the instruction set and k alone; on a GPU on k
// and how x and w are aligned. (Products of ops/matmul/gemm.h may sum in another order where there
// are more rows.) So texts can be written together and stay what they are alone.
// Inference; no backward.
// Shape letters: N rows, I columns, O outputs.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// More rows than this are better computed by blocks, as ops/matmul/linear.h has it.
inline constexpr std::int64_t kFewRows = 16;

/// x [N, I] f32, w [O, I] in f32, bf16 or, on the CPU, f16, or codes of quantize_rows.h in 8 bits
/// whole numbers (u8) with their `scales` [O] f32; bias [O] f32; scales and bias undefined where
/// there are none. [N, O] f32. Throws Error for other shapes and types.
Tensor few_rows(const Tensor& x, const Tensor& w, const Tensor& scales, const Tensor& bias);

}  // namespace vfm::ops
