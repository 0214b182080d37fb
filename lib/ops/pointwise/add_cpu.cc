// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cpu/simd.h"
#include "ops/pointwise/add_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class A, class B>
void add_all(A* y, const B* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(y + i, load(y + i) + load(x + i));
}

// In pieces whose sums stay in the nearest cache.
template <class T>
void add_parts(T* own, int place, const T* others, int parts, std::int64_t n) {
  constexpr std::int64_t kPiece = 1024;
#pragma omp parallel for schedule(static) if (n > kAlone)
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, n - begin);
    float sums[kPiece];
    for (int part = 0; part < parts; ++part) {
      const T* x = (part == place ? own : others + (part - (part > place)) * n) + begin;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i)
        sums[i] = part == 0 ? load(x + i) : sums[i] + load(x + i);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      store(own + begin + i, sums[i]);
  }
}

}  // namespace

void add_in_order(DType type, void* own, int place, const void* others, int parts, std::int64_t n) {
  by_type(type, [&](auto element) {
    using T = decltype(element);
    add_parts(static_cast<T*>(own), place, static_cast<const T*>(others), parts, n);
  });
}

void add_into(DType y_type, void* y, DType x_type, const void* x, std::int64_t n) {
  by_type(y_type, [&](auto to) {
    by_type(x_type, [&](auto from) {
      add_all(static_cast<decltype(to)*>(y), static_cast<const decltype(from)*>(x), n);
    });
  });
}

void add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                 std::int64_t wide) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < narrow; ++j)
      sum[i * narrow + j] = a[i * narrow + j] + b[i * wide + j];
}

void add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                          std::int64_t wide) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < wide; ++j)
      db[i * wide + j] = j < narrow ? dsum[i * narrow + j] : 0;
}

}  // namespace vfm::ops::VFM_ISA
