// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"
#include "ops/norm/norm_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void norm_pixel(const PixelNormArgs& a, float root, std::int64_t pixel) {
  const T* const x = static_cast<const T*>(a.x) + pixel * a.channels;
  T* const y = static_cast<T*>(a.y) + pixel * a.channels;
  const float squares = sum_lanes(a.channels, [&](auto v, std::int64_t i) {
    v = load_as<decltype(v)>(x + i);
    return v * v;
  });
  const float length = __builtin_sqrtf(squares);
  const float r = root / (length > 1e-12f || length != length ? length : 1e-12f);
  if (a.silu) {
#pragma omp simd
    for (std::int64_t i = 0; i < a.channels; ++i) {
      const float n = load(x + i) * r * a.weight[i];
      store(y + i, n / (1.f + exp_f(-n)));
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < a.channels; ++i)
      store(y + i, load(x + i) * r * a.weight[i]);
  }
}

}  // namespace

void pixel_norm(const PixelNormArgs& args) {
  const float root = __builtin_sqrtf(static_cast<float>(args.channels));
  by_type(args.type, [&](auto type) {
#pragma omp parallel for schedule(static) if (args.pixels * args.channels > kAlone)
    for (std::int64_t pixel = 0; pixel < args.pixels; ++pixel)
      norm_pixel<decltype(type)>(args, root, pixel);
  });
}

}  // namespace vfm::ops::VFM_ISA
