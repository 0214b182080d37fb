// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/position/position_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// K, the head dimension, is a constant in the common cases, so that the short loops have no ends to
// care for; 0 stands for any other.
template <int K>
VFM_INLINE int head_dim(const QkNormRopeArgs& a) {
  return K > 0 ? K : a.head_dim;
}

template <class T>
VFM_INLINE float inverse_rms(const T* x, int n, float epsilon) {
  const float squares = sum_lanes(n, [&](auto v, std::int64_t i) {
    v = load_as<decltype(v)>(x + i);
    return v * v;
  });
  return 1.f / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
}

// (first, second) turned by an angle; kBack: by its negative.
template <bool kBack, class V>
VFM_INLINE V first_turned(V first, V second, V c, V s) {
  return kBack ? first * c + second * s : first * c - second * s;
}
template <bool kBack, class V>
VFM_INLINE V second_turned(V first, V second, V c, V s) {
  return kBack ? second * c - first * s : second * c + first * s;
}

// Writes a head, rotated if there are angles. of(V{}, i) is its element i before that.
template <int K, bool kBack, class T, class Of>
VFM_INLINE void write_head(const QkNormRopeArgs& a, std::int64_t token, T* y, Of of) {
  const int dim = head_dim<K>(a), half = dim / 2;
  if (a.cosines == nullptr) {
    for_lanes(dim, [&](auto v, std::int64_t i) { store(y + i, of(v, i)); });
    return;
  }
  const float* cosines = a.cosines + token * half;
  const float* sines = a.sines + token * half;
  if (a.pairs) {
    for (int i = 0; i < half; ++i) {
      const float first = of(0.f, 2 * i), second = of(0.f, 2 * i + 1);
      store(y + 2 * i, first_turned<kBack>(first, second, cosines[i], sines[i]));
      store(y + 2 * i + 1, second_turned<kBack>(first, second, cosines[i], sines[i]));
    }
    return;
  }
  for_lanes(half, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    const V first = of(v, i), second = of(v, half + i);
    const V c = load_as<V>(cosines + i), s = load_as<V>(sines + i);
    store(y + i, first_turned<kBack>(first, second, c, s));
    store(y + half + i, second_turned<kBack>(first, second, c, s));
  });
}

template <int K, bool kBack, class T, class To>
VFM_INLINE void turn_head(const QkNormRopeArgs& a, std::int64_t token, const T* x, To* y) {
  write_head<K, kBack>(a, token, y,
                       [&](auto v, std::int64_t i) { return load_as<decltype(v)>(x + i); });
}

template <int K, class T>
VFM_INLINE void head_forward(const QkNormRopeArgs& a, std::int64_t token, const T* x, T* y,
                             const float* weight) {
  if (weight == nullptr) return turn_head<K, false>(a, token, x, y);
  const float r = inverse_rms(x, head_dim<K>(a), a.epsilon);
  write_head<K, false>(a, token, y, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    return load_as<V>(x + i) * r * load_as<V>(weight + i);
  });
}

// With n = x r and g = (dy rotated back) * weight: dx = r (g - n mean(g n)); dweight += dy n.
template <int K, class T>
VFM_INLINE void head_backward(const QkNormRopeArgs& a, std::int64_t token, const T* x, const T* dy,
                              T* dx, const float* weight, float* dweight, float* unrotated) {
  const int dim = head_dim<K>(a);
  const float r = inverse_rms(x, dim, a.epsilon);
  turn_head<K, true>(a, token, dy, unrotated);
  float product = sum_lanes(dim, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    const V n = load_as<V>(x + i) * r;
    const V g = load_as<V>(unrotated + i);
    store(dweight + i, load_as<V>(dweight + i) + g * n);
    v = g * load_as<V>(weight + i);
    store(unrotated + i, v);
    return v * n;
  });
  product /= static_cast<float>(dim);
  for_lanes(dim, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    store(dx + i, r * (load_as<V>(unrotated + i) - load_as<V>(x + i) * r * product));
  });
}

template <int K, class T>
void normed_tokens(const QkNormRopeArgs& a) {
  const int dim = head_dim<K>(a);
  const int normed = a.query_heads + a.key_heads, heads = normed + a.value_heads;
  const std::int64_t width = std::int64_t{heads} * dim;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    const T* x = static_cast<const T*>(a.x) + token * width;
    T* y = static_cast<T*>(a.y) + token * width;
    for (int h = 0; h < normed; ++h)
      head_forward<K>(a, token, x + h * dim, y + h * dim,
                      h < a.query_heads ? a.query_weight : a.key_weight);
    for (std::int64_t i = std::int64_t{normed} * dim; a.values && i < width; ++i)
      y[i] = x[i];
  }
}

template <int K, class T>
void normed_tokens_back(const QkNormRopeArgs& a) {
  const int dim = head_dim<K>(a);
  const int normed = a.query_heads + a.key_heads, heads = normed + a.value_heads;
  const std::int64_t width = std::int64_t{heads} * dim;
  const std::int64_t chunks = (a.tokens + kNormChunk - 1) / kNormChunk;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    // The last third is room for one head.
    float* sums = a.partial == nullptr ? nullptr : a.partial + chunk * 3 * dim;
    for (int i = 0; sums != nullptr && i < 2 * dim; ++i)
      sums[i] = 0;
    const std::int64_t end =
        (chunk + 1) * kNormChunk < a.tokens ? (chunk + 1) * kNormChunk : a.tokens;
    for (std::int64_t token = chunk * kNormChunk; token < end; ++token) {
      const T* x = static_cast<const T*>(a.x) + token * width;
      const T* dy = static_cast<const T*>(a.dy) + token * width;
      T* dx = static_cast<T*>(a.y) + token * width;
      for (int h = 0; h < normed; ++h) {
        const bool query = h < a.query_heads;
        const std::int64_t at = std::int64_t{h} * dim;
        if (sums == nullptr)
          turn_head<K, true>(a, token, dy + at, dx + at);
        else
          head_backward<K>(a, token, x + at, dy + at, dx + at,
                           query ? a.query_weight : a.key_weight, query ? sums : sums + dim,
                           sums + 2 * dim);
      }
      if (dx != dy)
        for (std::int64_t i = std::int64_t{normed} * dim; i < width; ++i)
          dx[i] = dy[i];
    }
  }
}

template <class T>
void forward(const QkNormRopeArgs& a) {
  switch (a.head_dim) {
    case 32:
      return normed_tokens<32, T>(a);
    case 64:
      return normed_tokens<64, T>(a);
    case 128:
      return normed_tokens<128, T>(a);
    default:
      return normed_tokens<0, T>(a);
  }
}

template <class T>
void backward(const QkNormRopeArgs& a) {
  switch (a.head_dim) {
    case 32:
      return normed_tokens_back<32, T>(a);
    case 64:
      return normed_tokens_back<64, T>(a);
    case 128:
      return normed_tokens_back<128, T>(a);
    default:
      return normed_tokens_back<0, T>(a);
  }
}

}  // namespace

void qk_norm_rope_forward(const QkNormRopeArgs& args) {
  by_type(args.type, [&](auto type) { forward<decltype(type)>(args); });
}

void qk_norm_rope_backward(const QkNormRopeArgs& args) {
  by_type(args.type, [&](auto type) { backward<decltype(type)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
