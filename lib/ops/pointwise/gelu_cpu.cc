// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/pointwise/gelu_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

constexpr float kInvSqrt2 = 0.70710678f;
constexpr float kInvSqrt2Pi = 0.39894228f;

template <class T>
void gelu_all(const T* x, T* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(y + i, 0.5f * v * (1.f + erf_f(v * kInvSqrt2)));
  }
}

// d/dx of x Phi(x) is Phi(x) + x phi(x).
template <bool kBoth, class T>
void gelu_back(const T* x, const T* dy, T* dx, T* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i), erf = erf_f(v * kInvSqrt2);
    const float slope = 0.5f * (1.f + erf) + v * kInvSqrt2Pi * exp_f(-0.5f * v * v);
    store(dx + i, load(dy + i) * slope);
    if constexpr (kBoth) store(y + i, 0.5f * v * (1.f + erf));
  }
}

}  // namespace

void gelu_forward(DType type, const void* x, void* y, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    gelu_all(static_cast<const T*>(x), static_cast<T*>(y), n);
  });
}

void gelu_backward(DType type, const void* x, const void* dy, void* dx, void* y, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    const auto back = y != nullptr ? gelu_back<true, T> : gelu_back<false, T>;
    back(static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx),
         static_cast<T*>(y), n);
  });
}

}  // namespace vfm::ops::VFM_ISA
