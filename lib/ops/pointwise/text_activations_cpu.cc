// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/pointwise/text_activations_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

constexpr float kRootHalf = 0.70710678f;

template <class T>
void relu_all(T* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(x + i, v < 0 ? 0.f : v);  // a NaN stays
  }
}

struct TanhGelu {
  VFM_INLINE float of(float v) { return tanh_gelu_f(v); }
};
struct ErfGelu {
  VFM_INLINE float of(float v) { return 0.5f * v * (1.f + erf_f(v * kRootHalf)); }
};
struct QuickGelu {
  VFM_INLINE float of(float v) { return v / (1.f + exp_f(-1.702f * v)); }
};

template <class F, class T>
void activate_all(T* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(x + i, F::of(load(x + i)));
}

template <class T>
void gated_gelu_all(T* x, const T* factor, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(x + i, tanh_gelu_f(load(x + i)) * load(factor + i));
}

}  // namespace

void relu(DType type, void* x, std::int64_t n) {
  by_type(type, [&](auto t) { relu_all(static_cast<decltype(t)*>(x), n); });
}

void gelu_in_place(DType type, Gelu kind, void* x, std::int64_t n) {
  by_type(type, [&](auto t) {
    auto* const values = static_cast<decltype(t)*>(x);
    switch (kind) {
      case Gelu::tanh:
        return activate_all<TanhGelu>(values, n);
      case Gelu::erf:
        return activate_all<ErfGelu>(values, n);
      case Gelu::quick:
        return activate_all<QuickGelu>(values, n);
    }
  });
}

void gated_gelu(DType type, void* x, const void* factor, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    gated_gelu_all(static_cast<T*>(x), static_cast<const T*>(factor), n);
  });
}

}  // namespace vfm::ops::VFM_ISA
