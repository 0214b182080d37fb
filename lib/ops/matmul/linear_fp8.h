// The linear layer y = x W^T with FP8 products, for inference (for training see linear.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/quantize.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Returns why linear_fp8 cannot multiply by a weight of this shape, [O, I]: O and I must be
/// multiples of 16 for tensor cores. Empty if it can.
std::string why_no_fp8_product(const Shape& weight);

/// Returns y [N, O] of dtype `out`, f32 or bf16, for quantised x [N, I] and w [O, I]. Has no
/// gradient. Throws Error for a tape that records, for shapes that do not fit, and on a GPU without
/// FP8.
Tensor linear_fp8(const Tape& tape, const Quantized& x, const Quantized& w, DType out);

/// Quantises x [N, I], f32 or bf16, and multiplies; y has x's dtype.
Tensor linear_fp8(const Tape& tape, const Tensor& x, const Quantized& w);

}  // namespace vfm::ops
