// Matrix products of f8e4m3 on the CPU, as a reference for those of the GPU; slower than bf16.
// gemm.h explains the arguments.
//
// Operands are widened to f32, in which products of two codes are exact, and multiplied by
// gemm_cpu(). Only the sums, and the sums times the scales, are rounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

/// C = A B; B is transposed, A is not.
void gemm_fp8_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                  void* c, DType c_dtype, std::int64_t c_stride);

/// Returns the number of floats of scratch memory: all operands, widened.
inline std::int64_t gemm_fp8_scratch(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m * k + n * k + m * n;
}

}  // namespace vfm::ops
