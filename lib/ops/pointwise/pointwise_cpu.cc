// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/cpu/simd.h"
#include "ops/pointwise/pointwise_kernels.h"

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
    const std::int64_t count = n - begin < kPiece ? n - begin : kPiece;
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
struct QuickGelu {
  VFM_INLINE float of(float v) { return v / (1.f + exp_f(-1.702f * v)); }
};
struct SquaredRelu {
  VFM_INLINE float of(float v) { return v < 0 ? 0.f : v * v; }
  VFM_INLINE float slope(float v) { return v < 0 ? 0.f : 2 * v; }
};

template <class F, class T>
void activate_all(const T* x, T* y, std::int64_t n) {
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

void activation_forward(DType type, ActivationKind kind, const void* x, void* y, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    const auto all = kind == ActivationKind::tanh_gelu      ? activate_all<GeluByTanh, T>
                     : kind == ActivationKind::quick_gelu   ? activate_all<QuickGelu, T>
                     : kind == ActivationKind::squared_relu ? activate_all<SquaredRelu, T>
                                                            : activate_all<PlainGelu, T>;
    all(static_cast<const T*>(x), static_cast<T*>(y), n);
  });
}

void activation_backward(DType type, ActivationKind kind, const void* x, const void* dy, void* dx,
                         void* y, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    const auto with = [&](auto f) {
      using F = decltype(f);
      return y != nullptr ? gelu_back<F, true, T> : gelu_back<F, false, T>;
    };
    const auto back = kind == ActivationKind::tanh_gelu      ? with(GeluByTanh())
                      : kind == ActivationKind::squared_relu ? with(SquaredRelu())
                                                             : with(PlainGelu());
    back(static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx),
         static_cast<T*>(y), n);
  });
}

void silu_forward(const float* x, float* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] / (1.f + exp_f(-x[i]));
}

void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = 1.f / (1.f + exp_f(-x[i]));
    dx[i] = dy[i] * s * (1.f + x[i] * (1.f - s));
  }
}

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

namespace {

template <class T>
void relu_all(T* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(x + i, v < 0 ? 0.f : v);  // a NaN stays
  }
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

void gated_gelu(DType type, void* x, const void* factor, std::int64_t n) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    gated_gelu_all(static_cast<T*>(x), static_cast<const T*>(factor), n);
  });
}

}  // namespace vfm::ops::VFM_ISA
