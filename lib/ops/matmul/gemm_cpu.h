// Matrix products on the CPU, by oneDNN; gemm.h has the meaning of the arguments.
//
// oneDNN compiles a kernel for each shape; the compiled ones are kept per thread, so a training
// step compiles nothing after the first. Without AVX-512 a bf16 product is computed in f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// Floats that it takes besides.
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                          DType c_dtype);

}  // namespace vfm::ops
