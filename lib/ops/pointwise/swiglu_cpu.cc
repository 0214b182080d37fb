// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/pointwise/swiglu_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void swiglu_all(const T* x, T* y, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const T *a = x + 2 * row * width, *b = a + width;
    T* out = y + row * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = load(a + i);
      store(out + i, v / (1.f + exp_f(-v)) * load(b + i));
    }
  }
}

template <class T>
void swiglu_back(const T* x, const T* dy, T* dx, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const T *a = x + 2 * row * width, *b = a + width, *d = dy + row * width;
    T *da = dx + 2 * row * width, *db = da + width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = load(a + i), s = 1.f / (1.f + exp_f(-v)), g = load(d + i);
      store(da + i, g * load(b + i) * s * (1.f + v * (1.f - s)));
      store(db + i, g * v * s);
    }
  }
}

}  // namespace

void swiglu_forward(DType type, const void* x, void* y, std::int64_t rows, std::int64_t width) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    swiglu_all(static_cast<const T*>(x), static_cast<T*>(y), rows, width);
  });
}

void swiglu_backward(DType type, const void* x, const void* dy, void* dx, std::int64_t rows,
                     std::int64_t width) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    swiglu_back(static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx), rows,
                width);
  });
}

}  // namespace vfm::ops::VFM_ISA
