// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/video_attention_kernels.h"
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void softmax(const float* scores, T* out, std::int64_t rows, std::int64_t columns, float scale) {
#pragma omp parallel for schedule(static) if (rows * columns > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const s = scores + row * columns;
    T* const p = out + row * columns;
    float largest = s[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < columns; ++i)
      largest = s[i] > largest ? s[i] : largest;
    const float sum = sum_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(s + i);
      if constexpr (sizeof(V) == sizeof(float))
        return exp_f((v - largest) * scale);
      else
        return exp_of_negative((v - largest) * scale);
    });
    const float inverse = 1.f / sum;
    for_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(s + i);
      if constexpr (sizeof(V) == sizeof(float))
        store(p + i, exp_f((v - largest) * scale) * inverse);
      else
        store(p + i, exp_of_negative((v - largest) * scale) * inverse);
    });
  }
}

template <class T>
void softmax_back(const T* p, const float* dp, T* ds, std::int64_t rows, std::int64_t columns,
                  float scale) {
#pragma omp parallel for schedule(static) if (rows * columns > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * columns;
    const float sum = sum_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      return load_as<V>(p + at + i) * load_as<V>(dp + at + i);
    });
    for_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(p + at + i) * (load_as<V>(dp + at + i) - sum);
      store(ds + at + i, v * scale);
    });
  }
}

}  // namespace

void softmax_rows(const float* s, DType type, void* p, std::int64_t rows, std::int64_t columns,
                  float scale) {
  by_type(type, [&](auto t) { softmax(s, static_cast<decltype(t)*>(p), rows, columns, scale); });
}

void softmax_rows_backward(DType type, const void* p, const float* dp, void* ds, std::int64_t rows,
                           std::int64_t columns, float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    softmax_back(static_cast<const T*>(p), dp, static_cast<T*>(ds), rows, columns, scale);
  });
}

}  // namespace vfm::ops::VFM_ISA
