// Matrix products on any device. Everything here is row-major.
//
// On the CPU by oneDNN (gemm_cpu.cc) or, in a build without it, by our own code (gemm_plain.cc); on
// the GPU by cuBLASLt (gemm_cuda.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace vfm::ops {

/// A matrix in memory: element (i, j) of the operand is data[i * stride + j], or data[j * stride +
/// i] if transposed. f32, bf16 or f8e4m3.
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;
  bool transposed = false;
  /// f8e4m3 only, and needed there: what all elements are multiplied with, one float on the device.
  const float* scale = nullptr;
};

/// What k and n of a product of f8e4m3, and all strides, must be multiples of; its matrices are
/// aligned to as many bytes.
inline constexpr std::int64_t kFp8Multiple = 16;

/// C = A B, or C += A B: A is m x k, B is k x n, C is m x n with rows of `c_stride` elements, all
/// on `device`. A and B have one dtype; C is f32, or bf16 when they are and nothing is added. Of
/// f8e4m3 only C = A B with B transposed and A not (what Hopper has), C f32 or bf16: for inference,
/// as on the GPU its sums keep fewer bits than f32.
void gemm(Device device, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// The file that keeps, for each GPU, library version and shape, the cuBLASLt algorithm that was
/// fastest here, so that a second run need not time them. Empty (the default): none.
void set_gemm_cache(std::string path);

}  // namespace vfm::ops
