// Matrix products on the CPU, with oneDNN and without; gemm.h explains the arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

/// With oneDNN, which compiles a kernel for each shape. Compiled kernels are kept per thread, so a
/// training step compiles nothing after the first step. Without AVX-512 a bf16 product is computed
/// in f32. In a build without oneDNN (the compute core alone, Meson's -Dtools=disabled) this is
/// gemm_plain().
void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// Returns the number of floats of scratch memory that gemm_cpu() needs.
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                          DType c_dtype);

/// Without a library; a reference for tests in every build. Operands are widened to f32 and summed
/// in f32, so a bf16 result is rounded once. The order of a sum depends on k only, so results do
/// not depend on the number of threads. Thread-safety: any thread; uses threads inside.
void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add);

}  // namespace vfm::ops
