// The linear layer y = x W^T with FP8 products, for inference (linear.h has the one for training).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/quantize.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Empty if linear_fp8 can multiply by a weight of this shape, [O, I], else why it cannot: O and I
/// must be multiples of 16, as tensor cores want them.
std::string why_no_fp8_product(const Shape& weight);

/// x [N, I], quantised; w [O, I], quantised once; y [N, O] of dtype `out`, f32 or bf16.
/// There is no gradient: throws Error for a tape that records, for shapes that do not fit, and on a
/// GPU without FP8.
Tensor linear_fp8(const Tape& tape, const Quantized& x, const Quantized& w, DType out);

/// The same of x [N, I], f32 or bf16, which is quantised here; y in x's dtype.
Tensor linear_fp8(const Tape& tape, const Tensor& x, const Quantized& w);

}  // namespace vfm::ops
