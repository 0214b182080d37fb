// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/simd.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Below so many elements one thread goes through them sooner than several are woken.
constexpr std::int64_t kBiasAlone = 16384;
// Of a gradient. Sums of few rows are added up, since f32 has few digits for millions of rows.
constexpr std::int64_t kBiasColumns = 64, kBiasRows = 256;

template <class T>
void add_bias_of(T* y, std::int64_t rows, std::int64_t stride, const float* bias,
                 std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    T* const to = y + row * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      store(to + i, load(to + i) + bias[i]);
  }
}

template <class T>
void bias_gradient_of(const T* dy, std::int64_t rows, std::int64_t width, float* sum) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t first = 0; first < width; first += kBiasColumns) {
    const std::int64_t count = width - first < kBiasColumns ? width - first : kBiasColumns;
    float all[kBiasColumns] = {};
    for (std::int64_t begin = 0; begin < rows; begin += kBiasRows) {
      float few[kBiasColumns] = {};
      const std::int64_t end = rows - begin < kBiasRows ? rows : begin + kBiasRows;
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const from = dy + row * width + first;
        for (std::int64_t i = 0; i < count; ++i)
          few[i] += load(from + i);
      }
      for (std::int64_t i = 0; i < kBiasColumns; ++i)
        all[i] += few[i];
    }
    for (std::int64_t i = 0; i < count; ++i)
      sum[first + i] += all[i];
  }
}

}  // namespace

void add_bias(DType type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
              std::int64_t width) {
  by_type(type,
          [&](auto t) { add_bias_of(static_cast<decltype(t)*>(y), rows, stride, bias, width); });
}

void bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t width, float* sum) {
  by_type(type,
          [&](auto t) { bias_gradient_of(static_cast<const decltype(t)*>(dy), rows, width, sum); });
}

}  // namespace vfm::ops::VFM_ISA
