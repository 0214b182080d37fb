// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv_kernels.h"
#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {
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
