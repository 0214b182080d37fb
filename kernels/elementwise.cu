// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "common/launch.cuh"
#include "common/normal.cuh"
#include "common/pack.cuh"
#include "common/vector.cuh"
#include "elementwise.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;  // a grid has under 2^31 blocks
constexpr float kInvSqrt2Pi = 0.39894228f;
constexpr float kTwoSqrt2OverPi = 1.59576912f;

// What a thread works on at a time: one element, or as many as fill 16 bytes of the smallest type.
template <int kCount>
struct Several {
  float v[kCount];
};

template <int kCount>
__device__ __forceinline__ Several<kCount> load(const float* p) {
  Several<kCount> result;
  if constexpr (kCount == 1) {
    result.v[0] = *p;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 v = load4(p + i);
      result.v[i] = v.x, result.v[i + 1] = v.y, result.v[i + 2] = v.z, result.v[i + 3] = v.w;
    }
  }
  return result;
}

template <int kCount>
__device__ __forceinline__ Several<kCount> load(const Bf16* p) {
  static_assert(kCount == 1 || kCount == 8);
  Several<kCount> result;
  if constexpr (kCount == 1) {
    result.v[0] = __bfloat162float(*p);
  } else {
    unpack(*reinterpret_cast<const uint4*>(p), result.v);
  }
  return result;
}

template <int kCount>
__device__ __forceinline__ void store(float* p, const Several<kCount>& values) {
  const float* v = values.v;
  if constexpr (kCount == 1) {
    *p = v[0];
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      store4(p + i, {v[i], v[i + 1], v[i + 2], v[i + 3]});
  }
}

template <int kCount>
__device__ __forceinline__ void store(Bf16* p, const Several<kCount>& values) {
  static_assert(kCount == 1 || kCount == 8);
  if constexpr (kCount == 1) {
    *p = __float2bfloat16_rn(values.v[0]);
  } else {
    *reinterpret_cast<uint4*>(p) = pack(values.v);
  }
}

struct Gelu {
  static __device__ __forceinline__ float of(float x, Normal n) { return gelu(x, n); }
  static __device__ __forceinline__ float of(float x) { return of(x, normal(x)); }
};
struct GeluBack {
  static __device__ __forceinline__ float of(float x, float dy, Normal n) {
    return dy * (0.5f + (copysignf(n.beyond, x) + x * n.bell * kInvSqrt2Pi));
  }
  static __device__ __forceinline__ float of(float x, float dy) { return of(x, dy, normal(x)); }
};
struct GeluBoth {
  static __device__ __forceinline__ float2 of(float x, float dy) {
    const Normal n = normal(x);
    return {GeluBack::of(x, dy, n), Gelu::of(x, n)};
  }
};
struct Silu {
  static __device__ __forceinline__ float of(float x) { return x / (1.f + expf(-x)); }
};
struct SiluBack {
  static __device__ __forceinline__ float of(float x, float dy) {
    const float s = 1.f / (1.f + expf(-x));
    return dy * s * (1.f + x * (1.f - s));
  }
};
struct Relu {
  static __device__ __forceinline__ float of(float x) { return x < 0 ? 0.f : x; }
};
struct TanhGelu {  // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u)
  static __device__ __forceinline__ float of(float x) {
    return x / (1.f + expf(-kTwoSqrt2OverPi * (x + 0.044715f * x * x * x)));
  }
};
// s (1 - s) is e r^2 for e = e^-|2u| and r = 1 / (1 + e), where nothing cancels. Beyond |x| = 100
// e is 0, so that x^2 may end there, before it is infinite.
struct TanhGeluBack {
  static __device__ __forceinline__ float of(float x, float dy) {
    const float u2 = kTwoSqrt2OverPi * (x + 0.044715f * x * x * x);
    const float e = expf(-fabsf(u2)), r = 1.f / (1.f + e);
    const float bend = kTwoSqrt2OverPi * (1.f + 0.134145f * fminf(x * x, 1e4f));
    return dy * ((u2 < 0 ? e * r : r) + x * (e * r * r) * bend);
  }
};
struct TanhGeluBoth {
  static __device__ __forceinline__ float2 of(float x, float dy) {
    return {TanhGeluBack::of(x, dy), TanhGelu::of(x)};
  }
};
struct QuickGelu {
  static __device__ __forceinline__ float of(float x) { return x / (1.f + expf(-1.702f * x)); }
};
struct SquaredRelu {
  static __device__ __forceinline__ float of(float x) { return x < 0 ? 0.f : x * x; }
};
struct SquaredReluBack {
  static __device__ __forceinline__ float of(float x, float dy) {
    return dy * (x < 0 ? 0.f : 2.f * x);
  }
};
struct SquaredReluBoth {
  static __device__ __forceinline__ float2 of(float x, float dy) {
    return {SquaredReluBack::of(x, dy), SquaredRelu::of(x)};
  }
};
struct GatedGelu {
  static __device__ __forceinline__ float of(float x, float by) { return TanhGelu::of(x) * by; }
};
struct Sum {
  static __device__ __forceinline__ float of(float a, float b) { return a + b; }
};
struct Same {
  static __device__ __forceinline__ float of(float x) { return x; }
};

// y = F(x...), kCount elements from i. All inputs are read before y is written, which may be one.
template <int kCount, class F, class Y, class... X>
__device__ __forceinline__ void compute(std::int64_t i, Y* y, const X*... x) {
  const auto apply = [&](const auto&... inputs) {
    Several<kCount> result;
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      result.v[k] = F::of(inputs.v[k]...);
    store(y + i, result);
  };
  apply(load<kCount>(x + i)...);
}

template <int kCount, class F, class Y, class... X>
__global__ void __launch_bounds__(kThreads) each_kernel(std::int64_t n, Y* y, const X*... x) {
  std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= n) {
    compute<kCount, F>(i, y, x...);
  } else if constexpr (kCount > 1) {
    for (; i < n; ++i)
      compute<1, F>(i, y, x...);
  }
}

// out = a x + b y, kCount elements from i.
template <int kCount, class Out, class X, class Y>
__device__ __forceinline__ void scaled_sum_some(std::int64_t i, Out* out, const X* x, const Y* y,
                                                float a, float b) {
  const Several<kCount> first = load<kCount>(x + i), second = load<kCount>(y + i);
  Several<kCount> sums;
#pragma unroll
  for (int k = 0; k < kCount; ++k)
    sums.v[k] = fmaf(a, first.v[k], b * second.v[k]);
  store(out + i, sums);
}

template <int kCount, class Out, class X, class Y>
__global__ void __launch_bounds__(kThreads)
    scaled_sum_kernel(std::int64_t n, Out* out, const X* x, const Y* y, float a, float b) {
  std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= n) {
    scaled_sum_some<kCount>(i, out, x, y, a, b);
  } else if constexpr (kCount > 1) {
    for (; i < n; ++i)
      scaled_sum_some<1>(i, out, x, y, a, b);
  }
}

// Of n elements, kMany or one for each thread.
template <int kMany, class Kernel, class... Arrays>
int launch_all(Kernel kernel, bool many, std::int64_t n, cudaStream_t stream, Arrays... arrays) {
  if (n < 0 || n > kMostElements) return cudaErrorInvalidValue;
  const std::int64_t step = std::int64_t{kThreads} * (many ? kMany : 1);
  const dim3 blocks(static_cast<unsigned>((n + step - 1) / step));
  return launch(kernel, blocks, kThreads, 0, stream, n, arrays...);
}

template <class F, class Y, class... X>
int each(std::int64_t n, cudaStream_t stream, Y* y, const X*... x) {
  constexpr int kMany = sizeof(Y) == 2 || ((sizeof(X) == 2) || ...) ? 8 : 4;
  const bool many = aligned_to_16(y, x...);
  const auto kernel = many ? each_kernel<kMany, F, Y, X...> : each_kernel<1, F, Y, X...>;
  return launch_all<kMany>(kernel, many, n, stream, y, x...);
}

// The same where all are of one type.
template <class F, class... X>
int each_of(Type type, std::int64_t n, cudaStream_t stream, void* y, const X*... x) {
  if (type == Type::bf16)
    return each<F>(n, stream, static_cast<Bf16*>(y), static_cast<const Bf16*>(x)...);
  return each<F>(n, stream, static_cast<float*>(y), static_cast<const float*>(x)...);
}

template <int kCount, class F, class T>
__device__ __forceinline__ void gelu_both(std::int64_t i, const T* x, const T* dy, T* dx, T* y) {
  const Several<kCount> v = load<kCount>(x + i), d = load<kCount>(dy + i);
  Several<kCount> slopes, values;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const float2 both = F::of(v.v[k], d.v[k]);
    slopes.v[k] = both.x, values.v[k] = both.y;
  }
  store(dx + i, slopes), store(y + i, values);
}

template <int kCount, class F, class T>
__global__ void __launch_bounds__(kThreads)
    gelu_both_kernel(std::int64_t n, const T* x, const T* dy, T* dx, T* y) {
  std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i + kCount <= n) return gelu_both<kCount, F>(i, x, dy, dx, y);
  for (; i < n; ++i)
    gelu_both<1, F>(i, x, dy, dx, y);
}

template <class Back, class Both, class T>
int gelu_back(const void* x_, const void* dy_, void* dx_, void* y_, std::int64_t n,
              cudaStream_t stream) {
  const T *x = static_cast<const T*>(x_), *dy = static_cast<const T*>(dy_);
  T *dx = static_cast<T*>(dx_), *y = static_cast<T*>(y_);
  if (y == nullptr) return each<Back>(n, stream, dx, x, dy);
  constexpr int kMany = sizeof(T) == 2 ? 8 : 4;
  const bool many = aligned_to_16(x, dy, dx, y);
  return launch_all<kMany>(many ? gelu_both_kernel<kMany, Both, T> : gelu_both_kernel<1, Both, T>,
                           many, n, stream, x, dy, dx, y);
}

template <class Y, class X>
int add_as(void* y, const void* x, std::int64_t n, cudaStream_t stream) {
  Y* const target = static_cast<Y*>(y);
  return each<Sum, Y, Y, X>(n, stream, target, target, static_cast<const X*>(x));
}

// Gate and value stand beside each other in a row of x, width elements each. A grid is rows by
// parts of a row.
template <int kCount, class T, bool kBackward>
__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(const std::int64_t width, const T* x, const T* dy, T* out) {
  const std::int64_t row = blockIdx.x, step = std::int64_t{gridDim.y} * kThreads * kCount;
  std::int64_t i = (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount;
  for (; i < width; i += step) {
    const Several<kCount> a = load<kCount>(x + 2 * row * width + i);
    const Several<kCount> b = load<kCount>(x + (2 * row + 1) * width + i);
    Several<kCount> first, second{};
    if constexpr (kBackward) {
      const Several<kCount> d = load<kCount>(dy + row * width + i);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        first.v[k] = SiluBack::of(a.v[k], d.v[k] * b.v[k]);
        second.v[k] = d.v[k] * Silu::of(a.v[k]);
      }
      store(out + 2 * row * width + i, first);
      store(out + (2 * row + 1) * width + i, second);
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        first.v[k] = Silu::of(a.v[k]) * b.v[k];
      store(out + row * width + i, first);
    }
  }
}

template <class T, bool kBackward>
int swiglu(const void* x, const void* dy, void* out, std::int64_t rows, std::int64_t width,
           cudaStream_t stream) {
  if (rows < 0 || rows > 0x7fffffff || width < 0 || width > kMostElements)
    return cudaErrorInvalidValue;
  constexpr int kMany = sizeof(T) == 2 ? 8 : 4;
  const bool many = aligned_to_16(x, dy, out) && width % kMany == 0;
  const std::int64_t step = kThreads * (many ? kMany : 1), blocks = (width + step - 1) / step;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>(std::min<std::int64_t>(blocks, 65535)));
  return launch(many ? swiglu_kernel<kMany, T, kBackward> : swiglu_kernel<1, T, kBackward>, grid,
                kThreads, 0, stream, width, static_cast<const T*>(x), static_cast<const T*>(dy),
                static_cast<T*>(out));
}

// Rows of f32: those of a, cut or filled up with zeros to `width`, plus those of b. A grid is rows
// by parts of a row.
struct Columns {
  const float* a = nullptr;
  std::int64_t a_width = 0;
  const float* b = nullptr;  // or null: zeros follow the columns of a
  std::int64_t b_width = 0;
  float* out = nullptr;
  std::int64_t width = 0;
};

template <int kCount>
__global__ void __launch_bounds__(kThreads) columns_kernel(const Columns c) {
  const std::int64_t row = blockIdx.x, step = std::int64_t{gridDim.y} * kThreads * kCount;
  std::int64_t i = (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount;
  for (; i < c.width; i += step) {
    Several<kCount> v{};
    if (i < c.a_width) v = load<kCount>(c.a + row * c.a_width + i);
    if (c.b) {
      const Several<kCount> w = load<kCount>(c.b + row * c.b_width + i);
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        v.v[k] += w.v[k];
    }
    store(c.out + row * c.width + i, v);
  }
}

int columns(const Columns& c, std::int64_t rows, cudaStream_t stream) {
  if (rows < 0 || rows > 0x7fffffff || c.a_width < 0 || c.width > kMostElements ||
      c.b_width > kMostElements)
    return cudaErrorInvalidValue;
  const bool many = aligned_to_16(c.a, c.b, c.out) && c.a_width % 4 == 0 && c.b_width % 4 == 0 &&
                    c.width % 4 == 0;
  const std::int64_t step = kThreads * (many ? 4 : 1), blocks = (c.width + step - 1) / step;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>(std::min<std::int64_t>(blocks, 65535)));
  return launch(many ? columns_kernel<4> : columns_kernel<1>, grid, kThreads, 0, stream, c);
}

template <int kCount, class T>
__global__ void __launch_bounds__(kThreads)
    scaled_columns_kernel(T* y, std::int64_t wide, const T* x, std::int64_t narrow, float scale) {
  const std::int64_t row = blockIdx.x, step = std::int64_t{gridDim.y} * kThreads * kCount;
  std::int64_t i = (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount;
  for (; i < narrow; i += step) {
    Several<kCount> v = load<kCount>(y + row * wide + i);
    const Several<kCount> w = load<kCount>(x + row * narrow + i);
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      v.v[k] += scale * w.v[k];
    store(y + row * wide + i, v);
  }
}

template <class T>
int scaled_columns(T* y, std::int64_t wide, const T* x, std::int64_t narrow, std::int64_t rows,
                   float scale, cudaStream_t stream) {
  if (rows < 0 || rows > 0x7fffffff || narrow < 0 || wide < narrow || wide > kMostElements)
    return cudaErrorInvalidValue;
  const bool many = aligned_to_16(y, x) && wide % 8 == 0 && narrow % 8 == 0;
  const std::int64_t step = kThreads * (many ? 8 : 1), blocks = (narrow + step - 1) / step;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>(std::min<std::int64_t>(blocks, 65535)));
  return launch(many ? scaled_columns_kernel<8, T> : scaled_columns_kernel<1, T>, grid, kThreads, 0,
                stream, y, wide, x, narrow, scale);
}

}  // namespace

int activation_forward(Type type, ActivationKind kind, const void* x, void* y, std::int64_t n,
                       CUstream_st* stream) {
  return kind == ActivationKind::tanh_gelu    ? each_of<TanhGelu>(type, n, stream, y, x)
         : kind == ActivationKind::gelu       ? each_of<Gelu>(type, n, stream, y, x)
         : kind == ActivationKind::quick_gelu ? each_of<QuickGelu>(type, n, stream, y, x)
                                              : each_of<SquaredRelu>(type, n, stream, y, x);
}

int activation_backward(Type type, ActivationKind kind, const void* x, const void* dy, void* dx,
                        void* y, std::int64_t n, CUstream_st* stream) {
  if (kind == ActivationKind::quick_gelu) return cudaErrorInvalidValue;
  const auto run = [&](auto back, auto both) {
    using Back = decltype(back);
    using Both = decltype(both);
    return type == Type::bf16 ? gelu_back<Back, Both, Bf16>(x, dy, dx, y, n, stream)
                              : gelu_back<Back, Both, float>(x, dy, dx, y, n, stream);
  };
  return kind == ActivationKind::tanh_gelu ? run(TanhGeluBack(), TanhGeluBoth())
         : kind == ActivationKind::gelu    ? run(GeluBack(), GeluBoth())
                                           : run(SquaredReluBack(), SquaredReluBoth());
}

int silu_forward(const float* x, float* y, std::int64_t n, CUstream_st* stream) {
  return each<Silu>(n, stream, y, x);
}

int silu_backward(const float* x, const float* dy, float* dx, std::int64_t n, CUstream_st* stream) {
  return each<SiluBack>(n, stream, dx, x, dy);
}

int swiglu_forward(Type type, const void* x, void* y, std::int64_t rows, std::int64_t width,
                   CUstream_st* stream) {
  return type == Type::bf16 ? swiglu<Bf16, false>(x, nullptr, y, rows, width, stream)
                            : swiglu<float, false>(x, nullptr, y, rows, width, stream);
}

int swiglu_backward(Type type, const void* x, const void* dy, void* dx, std::int64_t rows,
                    std::int64_t width, CUstream_st* stream) {
  return type == Type::bf16 ? swiglu<Bf16, true>(x, dy, dx, rows, width, stream)
                            : swiglu<float, true>(x, dy, dx, rows, width, stream);
}

int relu(Type type, void* x, std::int64_t n, CUstream_st* stream) {
  return each_of<Relu>(type, n, stream, x, x);
}

int gated_gelu(Type type, void* x, const void* factor, std::int64_t n, CUstream_st* stream) {
  return each_of<GatedGelu>(type, n, stream, x, x, factor);
}

int add_into(Type y_type, void* y, Type x_type, const void* x, std::int64_t n,
             CUstream_st* stream) {
  if (y_type == Type::f32)
    return x_type == Type::f32 ? add_as<float, float>(y, x, n, stream)
                               : add_as<float, Bf16>(y, x, n, stream);
  return x_type == Type::f32 ? add_as<Bf16, float>(y, x, n, stream)
                             : add_as<Bf16, Bf16>(y, x, n, stream);
}

int scaled_sum(Type out_type, void* out, float a, Type x_type, const void* x, float b, Type y_type,
               const void* y, std::int64_t n, CUstream_st* stream) {
  const auto run = [&](auto* to, const auto* first, const auto* second) {
    using Out = std::remove_pointer_t<decltype(to)>;
    using X = std::remove_const_t<std::remove_pointer_t<decltype(first)>>;
    using Y = std::remove_const_t<std::remove_pointer_t<decltype(second)>>;
    constexpr int kMany = sizeof(Out) == 2 || sizeof(X) == 2 || sizeof(Y) == 2 ? 8 : 4;
    const bool many = aligned_to_16(to, first, second);
    const auto kernel =
        many ? scaled_sum_kernel<kMany, Out, X, Y> : scaled_sum_kernel<1, Out, X, Y>;
    return launch_all<kMany>(kernel, many, n, stream, to, first, second, a, b);
  };
  const auto into = [&](auto* to) {
    const auto* const f32_x = static_cast<const float*>(x);
    const auto* const f32_y = static_cast<const float*>(y);
    if (x_type == Type::bf16) return run(to, static_cast<const Bf16*>(x), f32_y);
    if (y_type == Type::bf16) return run(to, f32_x, static_cast<const Bf16*>(y));
    return run(to, f32_x, f32_y);
  };
  if (x_type == Type::bf16 && y_type == Type::bf16) return cudaErrorInvalidValue;
  return out_type == Type::bf16 ? into(static_cast<Bf16*>(out)) : into(static_cast<float*>(out));
}

int convert(Type x_type, const void* x, Type y_type, void* y, std::int64_t n, CUstream_st* stream) {
  if (x_type == y_type) return cudaErrorInvalidValue;
  if (y_type == Type::bf16)
    return each<Same>(n, stream, static_cast<Bf16*>(y), static_cast<const float*>(x));
  return each<Same>(n, stream, static_cast<float*>(y), static_cast<const Bf16*>(x));
}

int add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                std::int64_t wide, CUstream_st* stream) {
  if (wide < narrow) return cudaErrorInvalidValue;
  return columns({a, narrow, b, wide, sum, narrow}, rows, stream);
}

int add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                         std::int64_t wide, CUstream_st* stream) {
  if (wide < narrow) return cudaErrorInvalidValue;
  return columns({dsum, narrow, nullptr, 0, db, wide}, rows, stream);
}

int add_scaled_columns(Type type, void* y, std::int64_t wide, const void* x, std::int64_t narrow,
                       std::int64_t rows, float scale, CUstream_st* stream) {
  if (type == Type::bf16)
    return scaled_columns(static_cast<Bf16*>(y), wide, static_cast<const Bf16*>(x), narrow, rows,
                          scale, stream);
  return scaled_columns(static_cast<float*>(y), wide, static_cast<const float*>(x), narrow, rows,
                        scale, stream);
}

}  // namespace vfm::kernels
