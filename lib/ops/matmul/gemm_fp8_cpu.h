// Matrix products of f8e4m3 on the CPU: what the GPU's are compared with, and slower than of bf16.
// gemm.h has the meaning of the arguments.
//
// Operands are widened to f32, where products of two codes are exact, and multiplied by gemm_cpu();
// what is rounded are the sums, and those times the scales.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

/// C = A B, B transposed, A not.
void gemm_fp8_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                  void* c, DType c_dtype, std::int64_t c_stride);

/// Floats that it takes besides: all operands, widened.
inline std::int64_t gemm_fp8_scratch(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m * k + n * k + m * n;
}

}  // namespace vfm::ops
