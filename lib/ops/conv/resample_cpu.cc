// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv_kernels.h"
#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void pool_rows(const T* x, T* y, std::int64_t rows, std::int64_t columns, std::int64_t channels,
               float scale) {
  const std::int64_t line = 2 * columns * channels;
#pragma omp parallel for schedule(static) if (rows * line > kAlone)
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const T* const above = x + 2 * row * line + 2 * column * channels;
      const T* const below = above + line;
      T* const to = y + (row * columns + column) * channels;
#pragma omp simd
      for (std::int64_t i = 0; i < channels; ++i)
        store(to + i, scale * (load(above + i) + load(above + channels + i) + load(below + i) +
                               load(below + channels + i)));
    }
}

template <class T>
void repeat_rows(const T* x, T* y, std::int64_t rows, std::int64_t columns, std::int64_t channels,
                 float scale) {
  const std::int64_t line = 2 * columns * channels;
#pragma omp parallel for schedule(static) if (rows * line > kAlone)
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const T* const from = x + (row * columns + column) * channels;
      T* const above = y + 2 * row * line + 2 * column * channels;
      T* const below = above + line;
#pragma omp simd
      for (std::int64_t i = 0; i < channels; ++i) {
        const float v = scale * load(from + i);
        store(above + i, v);
        store(above + channels + i, v);
        store(below + i, v);
        store(below + channels + i, v);
      }
    }
}

template <class T>
void pool_pairs(const T* x, T* y, std::int64_t frames, std::int64_t size, float scale) {
  for (std::int64_t t = 0; t < frames; ++t) {
    const T* const first = x + 2 * t * size;
    const T* const second = first + size;
    T* const to = y + t * size;
#pragma omp parallel for simd schedule(static) if (size > kAlone)
    for (std::int64_t i = 0; i < size; ++i)
      store(to + i, scale * (load(first + i) + load(second + i)));
  }
}

template <class T>
void repeat_pairs(const T* x, T* y, std::int64_t frames, std::int64_t size, float scale) {
  for (std::int64_t t = 0; t < frames; ++t) {
    const T* const from = x + t * size;
    T* const first = y + 2 * t * size;
    T* const second = first + size;
#pragma omp parallel for simd schedule(static) if (size > kAlone)
    for (std::int64_t i = 0; i < size; ++i) {
      const float v = scale * load(from + i);
      store(first + i, v);
      store(second + i, v);
    }
  }
}

}  // namespace

void pool_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                 std::int64_t channels, float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    pool_rows(static_cast<const T*>(x), static_cast<T*>(y), rows, columns, channels, scale);
  });
}

void repeat_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                   std::int64_t channels, float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    repeat_rows(static_cast<const T*>(x), static_cast<T*>(y), rows, columns, channels, scale);
  });
}

void pool_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                 float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    pool_pairs(static_cast<const T*>(x), static_cast<T*>(y), frames, size, scale);
  });
}

void repeat_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                   float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    repeat_pairs(static_cast<const T*>(x), static_cast<T*>(y), frames, size, scale);
  });
}

}  // namespace vfm::ops::VFM_ISA
