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

namespace {

struct Patches {
  std::int64_t space, pixels, frame_pixels, group;
  explicit Patches(const RegroupArgs& a)
      : space(a.space),
        pixels(std::int64_t{a.frames} * a.space * a.space),
        frame_pixels(std::int64_t{a.space} * a.space),
        group(a.fine_channels * pixels / a.coarse_channels) {}
};

template <class T>
void pool_row(const RegroupArgs& a, const Patches& p, std::int64_t row) {
  const std::int64_t line = a.columns * p.space * a.fine_channels;
  const float scale = 1.f / static_cast<float>(p.group);
  for (std::int64_t column = 0; column < a.columns; ++column) {
    const T* const x =
        static_cast<const T*>(a.x) + row * p.space * line + column * p.space * a.fine_channels;
    T* const y = static_cast<T*>(a.y) + (row * a.columns + column) * a.coarse_channels;
    std::int64_t channel = 0, pixel = 0;  // of the next value of the patch
    for (std::int64_t o = 0; o < a.coarse_channels; ++o) {
      float sum = 0;
      for (std::int64_t i = 0; i < p.group; ++i) {
        const std::int64_t inside = pixel - a.frame * p.frame_pixels;
        if (inside >= 0 && inside < p.frame_pixels)
          sum += load(x + inside / p.space * line + inside % p.space * a.fine_channels + channel);
        if (++pixel == p.pixels) pixel = 0, ++channel;
      }
      store(y + o, sum * scale + (a.add ? load(y + o) : 0.f));
    }
  }
}

template <class T>
void repeat_row(const RegroupArgs& a, const Patches& p, std::int64_t row) {
  const std::int64_t line = a.columns * p.space * a.fine_channels;
  for (std::int64_t column = 0; column < a.columns; ++column) {
    const T* const x = static_cast<const T*>(a.x) + (row * a.columns + column) * a.coarse_channels;
    for (std::int64_t inside = 0; inside < p.frame_pixels; ++inside) {
      T* const y = static_cast<T*>(a.y) + (row * p.space + inside / p.space) * line +
                   (column * p.space + inside % p.space) * a.fine_channels;
      std::int64_t value = a.frame * p.frame_pixels + inside;
      for (std::int64_t c = 0; c < a.fine_channels; ++c, value += p.pixels)
        y[c] = x[value / p.group];
    }
  }
}

}  // namespace

void pool_patches(const RegroupArgs& args) {
  const Patches patches(args);
  by_type(args.type, [&](auto type) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < args.rows; ++row)
      pool_row<decltype(type)>(args, patches, row);
  });
}

void repeat_patches(const RegroupArgs& args) {
  const Patches patches(args);
  by_type(args.type, [&](auto type) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < args.rows; ++row)
      repeat_row<decltype(type)>(args, patches, row);
  });
}

}  // namespace vfm::ops::VFM_ISA
