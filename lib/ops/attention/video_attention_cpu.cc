// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "ops/attention/video_attention_kernels.h"
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class T>
void softmax(const float* scores, T* out, std::int64_t rows, std::int64_t columns, float scale) {
#pragma omp parallel for schedule(static) if (rows * columns > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const s = scores + row * columns;
    T* const p = out + row * columns;
    float largest = s[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < columns; ++i)
      largest = s[i] > largest ? s[i] : largest;
    const float sum = sum_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(s + i);
      if constexpr (sizeof(V) == sizeof(float))
        return exp_f((v - largest) * scale);
      else
        return exp_of_negative((v - largest) * scale);
    });
    const float inverse = 1.f / sum;
    for_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(s + i);
      if constexpr (sizeof(V) == sizeof(float))
        store(p + i, exp_f((v - largest) * scale) * inverse);
      else
        store(p + i, exp_of_negative((v - largest) * scale) * inverse);
    });
  }
}

template <class T>
void softmax_back(const T* p, const float* dp, T* ds, std::int64_t rows, std::int64_t columns,
                  float scale) {
#pragma omp parallel for schedule(static) if (rows * columns > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * columns;
    const float sum = sum_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      return load_as<V>(p + at + i) * load_as<V>(dp + at + i);
    });
    for_lanes(columns, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(p + at + i) * (load_as<V>(dp + at + i) - sum);
      store(ds + at + i, v * scale);
    });
  }
}

}  // namespace

void softmax_rows(const float* s, DType type, void* p, std::int64_t rows, std::int64_t columns,
                  float scale) {
  by_type(type, [&](auto t) { softmax(s, static_cast<decltype(t)*>(p), rows, columns, scale); });
}

void softmax_rows_backward(DType type, const void* p, const float* dp, void* ds, std::int64_t rows,
                           std::int64_t columns, float scale) {
  by_type(type, [&](auto t) {
    using T = decltype(t);
    softmax_back(static_cast<const T*>(p), dp, static_cast<T*>(ds), rows, columns, scale);
  });
}

namespace {

template <class T>
VFM_INLINE float dot(const T* a, const T* b, std::int64_t n) {
  return sum_lanes(n, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    return load_as<V>(a + i) * load_as<V>(b + i);
  });
}

// p[0, seen) of one query.
template <class T>
VFM_INLINE void probabilities(const TimeAttentionArgs& a, const T* q, std::int64_t pixel,
                              std::int64_t seen, float* p) {
  float largest = -__builtin_inff();
  for (std::int64_t j = 0; j < seen; ++j) {
    p[j] = a.scale * dot(q, static_cast<const T*>(a.keys[j]) + pixel * a.channels, a.channels);
    largest = p[j] > largest ? p[j] : largest;
  }
  float sum = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    p[j] = exp_f(p[j] - largest);
    sum += p[j];
  }
  const float inverse = 1.f / sum;
  for (std::int64_t j = 0; j < seen; ++j)
    p[j] *= inverse;
}

template <class T>
VFM_INLINE void add_scaled(float* to, const T* from, float factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    to[i] += factor * load(from + i);
}

template <class T>
VFM_INLINE void put(T* to, const float* from, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    store(to + i, from[i]);
}

VFM_INLINE void clear(float* at, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    at[i] = 0;
}

template <class T>
void forward(const TimeAttentionArgs& a) {
#pragma omp parallel for schedule(static)
  for (std::int64_t pixel = 0; pixel < a.pixels; ++pixel) {
    float* const p = a.scratch + omp_get_thread_num() * a.scratch_stride;
    float* const sum = p + a.frames;
    for (std::int64_t t = 0; t < a.queries; ++t) {
      const std::int64_t at = (t * a.pixels + pixel) * a.channels;
      const std::int64_t seen = a.frames - a.queries + t + 1;
      probabilities(a, static_cast<const T*>(a.q) + at, pixel, seen, p);
      clear(sum, a.channels);
      for (std::int64_t j = 0; j < seen; ++j)
        add_scaled(sum, static_cast<const T*>(a.values[j]) + pixel * a.channels, p[j], a.channels);
      put(static_cast<T*>(a.out) + at, sum, a.channels);
    }
  }
}

// One pixel. dv_j += p_j dout; ds_j = scale p_j (dp_j - sum of p dp); dq = sum of ds_j k_j; dk_j +=
// ds_j q.
template <class T>
VFM_INLINE void pixel_backward(const TimeAttentionArgs& a, std::int64_t pixel, float* room) {
  float *const p = room, *const dp = p + a.frames;
  float* const dk = room + 2 * a.frames;
  float* const dv = dk + a.frames * a.channels;
  clear(dk, 2 * a.frames * a.channels);
  const std::int64_t n = a.channels, offset = pixel * n, step = a.pixels * n;
  for (std::int64_t t = 0; t < a.queries; ++t) {
    const T* const q = static_cast<const T*>(a.q) + t * step + offset;
    const T* const dout = static_cast<const T*>(a.dout) + t * step + offset;
    probabilities(a, q, pixel, t + 1, p);
    float sum = 0;
    for (std::int64_t j = 0; j <= t; ++j) {
      dp[j] = dot(dout, static_cast<const T*>(a.values[j]) + offset, n);
      sum += p[j] * dp[j];
      add_scaled(dv + j * n, dout, p[j], n);
    }
    T* const dq = static_cast<T*>(a.dq) + t * step + offset;
    for (std::int64_t j = 0; j <= t; ++j) {
      dp[j] = a.scale * p[j] * (dp[j] - sum);
      add_scaled(dk + j * n, q, dp[j], n);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      float v = 0;
      for (std::int64_t j = 0; j <= t; ++j)
        v += dp[j] * load(static_cast<const T*>(a.keys[j]) + offset + i);
      store(dq + i, v);
    }
  }
  for (std::int64_t j = 0; j < a.frames; ++j) {
    put(static_cast<T*>(a.dk) + j * step + offset, dk + j * n, n);
    put(static_cast<T*>(a.dv) + j * step + offset, dv + j * n, n);
  }
}

template <class T>
void backward(const TimeAttentionArgs& a) {
#pragma omp parallel for schedule(static)
  for (std::int64_t pixel = 0; pixel < a.pixels; ++pixel)
    pixel_backward<T>(a, pixel, a.scratch + omp_get_thread_num() * a.scratch_stride);
}

}  // namespace

void time_attention_forward(const TimeAttentionArgs& args) {
  by_type(args.type, [&](auto type) { forward<decltype(type)>(args); });
}

void time_attention_backward(const TimeAttentionArgs& args) {
  by_type(args.type, [&](auto type) { backward<decltype(type)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
