// Matrix products on the CPU, by oneDNN. Everything here is row-major.
//
// oneDNN compiles a kernel for each shape; the compiled ones are kept per thread, so a training
// step compiles nothing after the first. Without AVX-512 a bf16 product is computed in f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

/// A matrix in memory: element (i, j) of the operand is data[i * stride + j], or data[j * stride +
/// i] if transposed. f32 or bf16.
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// C = A B, or C += A B: A is m x k, B is k x n, C is m x n with rows of `c_stride` elements. A and
/// B have one dtype; C is f32, or bf16 when they are and nothing is added.
void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add);

}  // namespace vfm::ops
