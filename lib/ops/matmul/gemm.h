// Matrix products on any device. All matrices are row-major.
//
// The CPU uses oneDNN (gemm_cpu.cc) or, in a build without oneDNN, our own code (gemm_plain.cc);
// for some products of bf16 the tiles of AMX (gemm_tiles.h).
// The GPU uses cuBLASLt (gemm_cuda.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace vfm::ops {

/// A matrix of f32, bf16 or f8e4m3 in memory. Element (i, j) of the operand is
/// data[i * stride + j], or data[j * stride + i] if transposed.
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t stride = 0;
  bool transposed = false;
  /// Required for f8e4m3, null otherwise: one float on the device that scales all elements.
  const float* scale = nullptr;
};

/// In products of f8e4m3, k, n and all strides must be multiples of this, and the matrices must be
/// aligned to this number of bytes.
inline constexpr std::int64_t kFp8Multiple = 16;

/// C = A B, or C += A B if `add`: A is m x k, B is k x n, C is m x n with rows of `c_stride`
/// elements, all on `device`. A and B have the same dtype. C is f32; it may be bf16 if A and B are
/// bf16 and nothing is added. f8e4m3 is for inference, as on the GPU its sums keep fewer bits than
/// f32. It supports what Hopper does: C = A B with B transposed and A not, and C f32 or bf16.
void gemm(Device device, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// Sets the file that keeps the fastest cuBLASLt algorithm for each GPU, library version and shape,
/// so that a second run need not time them. Empty, the default, keeps none.
void set_gemm_cache(std::string path);

}  // namespace vfm::ops
