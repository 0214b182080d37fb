// SPDX-License-Identifier: Apache-2.0
#include "ops/qk_norm_rope_cpu.h"

#include "ops/simd.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
VFM_INLINE float inverse_rms(const T* x, int n, float epsilon) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int i = 0; i < n; ++i)
    squares += load(x + i) * load(x + i);
  return 1.f / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
}

template <class T>
VFM_INLINE void head_forward(const QkNormRopeArgs& a, std::int64_t token, const T* x, T* y,
                             const float* weight) {
  const int half = a.head_dim / 2;
  const float r = inverse_rms(x, a.head_dim, a.epsilon);
  if (a.cosines == nullptr) {
#pragma omp simd
    for (int i = 0; i < a.head_dim; ++i)
      store(y + i, load(x + i) * r * weight[i]);
    return;
  }
  const float* cosines = a.cosines + token * half;
  const float* sines = a.sines + token * half;
#pragma omp simd
  for (int i = 0; i < half; ++i) {
    const float first = load(x + i) * r * weight[i];
    const float second = load(x + half + i) * r * weight[half + i];
    store(y + i, first * cosines[i] - second * sines[i]);
    store(y + half + i, second * cosines[i] + first * sines[i]);
  }
}

// With n = x r and g = (dy rotated back) * weight: dx = r (g - n mean(g n)); dweight += dy n.
template <class T>
VFM_INLINE void head_backward(const QkNormRopeArgs& a, std::int64_t token, const T* x, const T* dy,
                              T* dx, const float* weight, float* dweight, float* unrotated) {
  const int half = a.head_dim / 2;
  const float r = inverse_rms(x, a.head_dim, a.epsilon);
  if (a.cosines == nullptr) {
#pragma omp simd
    for (int i = 0; i < a.head_dim; ++i)
      unrotated[i] = load(dy + i);
  } else {
    const float* cosines = a.cosines + token * half;
    const float* sines = a.sines + token * half;
#pragma omp simd
    for (int i = 0; i < half; ++i) {
      const float first = load(dy + i), second = load(dy + half + i);
      unrotated[i] = first * cosines[i] + second * sines[i];
      unrotated[half + i] = second * cosines[i] - first * sines[i];
    }
  }
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (int i = 0; i < a.head_dim; ++i) {
    const float n = load(x + i) * r;
    dweight[i] += unrotated[i] * n;
    unrotated[i] *= weight[i];
    product += unrotated[i] * n;
  }
  product /= static_cast<float>(a.head_dim);
#pragma omp simd
  for (int i = 0; i < a.head_dim; ++i)
    store(dx + i, r * (unrotated[i] - load(x + i) * r * product));
}

template <class T>
void forward(const QkNormRopeArgs& a) {
  const int normed = a.query_heads + a.key_heads, heads = normed + a.value_heads;
  const std::int64_t width = std::int64_t{heads} * a.head_dim;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    const T* x = static_cast<const T*>(a.x) + token * width;
    T* y = static_cast<T*>(a.y) + token * width;
    for (int h = 0; h < normed; ++h)
      head_forward(a, token, x + h * a.head_dim, y + h * a.head_dim,
                   h < a.query_heads ? a.query_weight : a.key_weight);
    for (std::int64_t i = std::int64_t{normed} * a.head_dim; i < width; ++i)
      y[i] = x[i];
  }
}

template <class T>
void backward(const QkNormRopeArgs& a) {
  const int normed = a.query_heads + a.key_heads, heads = normed + a.value_heads;
  const std::int64_t width = std::int64_t{heads} * a.head_dim;
  const std::int64_t chunks = (a.tokens + kNormChunk - 1) / kNormChunk;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    float* sums = a.partial + chunk * 3 * a.head_dim;  // the last third is room for one head
    for (int i = 0; i < 2 * a.head_dim; ++i)
      sums[i] = 0;
    const std::int64_t end =
        (chunk + 1) * kNormChunk < a.tokens ? (chunk + 1) * kNormChunk : a.tokens;
    for (std::int64_t token = chunk * kNormChunk; token < end; ++token) {
      const T* x = static_cast<const T*>(a.x) + token * width;
      const T* dy = static_cast<const T*>(a.dy) + token * width;
      T* dx = static_cast<T*>(a.y) + token * width;
      for (int h = 0; h < normed; ++h) {
        const bool query = h < a.query_heads;
        const std::int64_t at = std::int64_t{h} * a.head_dim;
        head_backward(a, token, x + at, dy + at, dx + at, query ? a.query_weight : a.key_weight,
                      query ? sums : sums + a.head_dim, sums + 2 * a.head_dim);
      }
      if (dx != dy)
        for (std::int64_t i = std::int64_t{normed} * a.head_dim; i < width; ++i)
          dx[i] = dy[i];
    }
  }
}

}  // namespace

void qk_norm_rope_forward(const QkNormRopeArgs& args) {
  args.low ? forward<bf16>(args) : forward<float>(args);
}

void qk_norm_rope_backward(const QkNormRopeArgs& args) {
  args.low ? backward<bf16>(args) : backward<float>(args);
}

}  // namespace vfm::ops::VFM_ISA
