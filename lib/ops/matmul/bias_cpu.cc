// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/half.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops {
namespace {

// Below so many elements one thread goes through them sooner than several are woken.
constexpr std::int64_t kBiasAlone = 16384;
// Of a gradient. Sums of few rows are added up, since f32 has few digits for millions of rows.
constexpr std::int64_t kBiasColumns = 64, kBiasRows = 256;

float wide_of(float v) {
  return v;
}
float wide_of(std::uint16_t v) {
  return bfloat16_to_float(v);
}
void narrow_to(float& to, float v) {
  to = v;
}
void narrow_to(std::uint16_t& to, float v) {
  to = float_to_bfloat16(v);
}

template <class T>
void add_bias_of(T* y, std::int64_t rows, std::int64_t stride, const float* bias,
                 std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    T* const to = y + row * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      narrow_to(to[i], wide_of(to[i]) + bias[i]);
  }
}

template <class T>
void bias_gradient_of(const T* dy, std::int64_t rows, std::int64_t width, float* sum) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t first = 0; first < width; first += kBiasColumns) {
    const std::int64_t count = std::min(kBiasColumns, width - first);
    std::array<float, kBiasColumns> all{};
    for (std::int64_t begin = 0; begin < rows; begin += kBiasRows) {
      std::array<float, kBiasColumns> few{};
      for (std::int64_t row = begin; row < std::min(rows, begin + kBiasRows); ++row) {
        const T* const from = dy + row * width + first;
        for (std::int64_t i = 0; i < count; ++i)
          few[static_cast<std::size_t>(i)] += wide_of(from[i]);
      }
      for (std::size_t i = 0; i < few.size(); ++i)
        all[i] += few[i];
    }
    for (std::int64_t i = 0; i < count; ++i)
      sum[first + i] += all[static_cast<std::size_t>(i)];
  }
}

}  // namespace

void cpu::add_bias(DType type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
                   std::int64_t width) {
  if (type == DType::f32)
    add_bias_of(static_cast<float*>(y), rows, stride, bias, width);
  else
    add_bias_of(static_cast<std::uint16_t*>(y), rows, stride, bias, width);
}

void cpu::bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t width,
                        float* sum) {
  if (type == DType::f32)
    bias_gradient_of(static_cast<const float*>(dy), rows, width, sum);
  else
    bias_gradient_of(static_cast<const std::uint16_t*>(dy), rows, width, sum);
}

}  // namespace vfm::ops
