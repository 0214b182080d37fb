// Matrix products on the CPU with oneDNN; gemm.h explains the arguments.
//
// oneDNN compiles a kernel for each shape. Compiled kernels are kept per thread, so a training step
// compiles nothing after the first step. Without AVX-512 a bf16 product is computed in f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// Returns the number of floats of scratch memory that gemm_cpu() needs.
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                          DType c_dtype);

}  // namespace vfm::ops
