// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/gemm_fp8_cpu.h"

#include <algorithm>

#include "base/float8.h"
#include "ops/matmul/gemm_cpu.h"

namespace vfm::ops {
namespace {

Tensor widen(const Matrix& matrix, std::int64_t rows, std::int64_t width) {
  const Tensor wide({rows, width});
  const auto* codes = static_cast<const std::uint8_t*>(matrix.data);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      wide.data<float>()[i * width + j] = f8e4m3_to_float(codes[i * matrix.stride + j]);
  return wide;
}

}  // namespace

void gemm_fp8_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                  void* c, DType c_dtype, std::int64_t c_stride) {
  const Tensor wide_a = widen(a, m, k), wide_b = widen(b, n, k), sums({m, n});
  gemm_cpu(m, n, k, {wide_a.raw(), DType::f32, k, false}, {wide_b.raw(), DType::f32, k, true},
           sums.raw(), DType::f32, n, false);
  const float scale = *a.scale * *b.scale;
  for (float& v : sums.floats())
    v *= scale;
  for (std::int64_t i = 0; i < m; ++i) {
    const float* from = sums.data<float>() + i * n;
    if (c_dtype == DType::f32)
      std::copy(from, from + n, static_cast<float*>(c) + i * c_stride);
    else
      convert_f32_to_bf16(from, static_cast<std::uint16_t*>(c) + i * c_stride, n);
  }
}

}  // namespace vfm::ops
