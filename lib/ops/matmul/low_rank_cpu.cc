// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/simd.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void scaled_columns(T* y, std::int64_t wide, const T* x, std::int64_t narrow, std::int64_t rows,
                    float scale) {
#pragma omp parallel for schedule(static) if (rows * narrow > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = y + row * wide;
    const T* from = x + row * narrow;
#pragma omp simd
    for (std::int64_t i = 0; i < narrow; ++i)
      store(to + i, load(to + i) + scale * load(from + i));
  }
}

}  // namespace

void add_scaled_columns(DType type, void* y, std::int64_t wide, const void* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    scaled_columns(static_cast<T*>(y), wide, static_cast<const T*>(x), narrow, rows, scale);
  });
}

}  // namespace vfm::ops::VFM_ISA
