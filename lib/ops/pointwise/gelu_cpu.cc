// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/pointwise/gelu_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

constexpr float kInvSqrt2 = 0.70710678f;
constexpr float kInvSqrt2Pi = 0.39894228f;

// d/dx of x Phi(x) is Phi(x) + x phi(x).
struct PlainGelu {
  VFM_INLINE float of(float v) { return 0.5f * v * (1.f + erf_f(v * kInvSqrt2)); }
  VFM_INLINE float slope(float v) {
    const float erf = erf_f(v * kInvSqrt2);
    return 0.5f * (1.f + erf) + v * kInvSqrt2Pi * exp_f(-0.5f * v * v);
  }
};
struct GeluByTanh {
  VFM_INLINE float of(float v) { return tanh_gelu_f(v); }
  VFM_INLINE float slope(float v) { return tanh_gelu_slope_f(v); }
};

template <class F, class T>
void gelu_all(const T* x, T* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(y + i, F::of(load(x + i)));
}

template <class F, bool kBoth, class T>
void gelu_back(const T* x, const T* dy, T* dx, T* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(dx + i, load(dy + i) * F::slope(v));
    if constexpr (kBoth) store(y + i, F::of(v));
  }
}

}  // namespace

void gelu_forward(DType type, Gelu kind, const void* x, void* y, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    const auto all = kind == Gelu::tanh ? gelu_all<GeluByTanh, T> : gelu_all<PlainGelu, T>;
    all(static_cast<const T*>(x), static_cast<T*>(y), n);
  });
}

void gelu_backward(DType type, Gelu kind, const void* x, const void* dy, void* dx, void* y,
                   std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    const auto with = [&](auto f) {
      using F = decltype(f);
      return y != nullptr ? gelu_back<F, true, T> : gelu_back<F, false, T>;
    };
    const auto back = kind == Gelu::tanh ? with(GeluByTanh()) : with(PlainGelu());
    back(static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx),
         static_cast<T*>(y), n);
  });
}

}  // namespace vfm::ops::VFM_ISA
