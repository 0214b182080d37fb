// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/norm/norm_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

VFM_INLINE float heads_inverse_rms(const HeadsNormArgs& a, std::int64_t token) {
  const float mean = a.sums[token * a.step] / static_cast<float>(a.all);
  return 1.f / __builtin_sqrtf(mean + a.epsilon);
}

template <class T>
void norm_token(const HeadsNormArgs& a, std::int64_t token) {
  const T* const x = static_cast<const T*>(a.x) + token * a.stride;
  if (!a.summed)
    a.sums[token * a.step] = sum_lanes(a.width, [&](auto v, std::int64_t i) {
      v = load_as<decltype(v)>(x + i);
      return v * v;
    });
  if (a.y == nullptr) return;
  T* const y = static_cast<T*>(a.y) + token * a.stride;
  const float r = heads_inverse_rms(a, token);
  for_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    store(y + i, load_as<V>(x + i) * r * load_as<V>(a.weight + i));
  });
}

template <class T>
void product_of_token(const HeadsNormArgs& a, std::int64_t token) {
  const T* const x = static_cast<const T*>(a.x) + token * a.stride;
  const T* const dy = static_cast<const T*>(a.dy) + token * a.stride;
  const float r = heads_inverse_rms(a, token);
  a.products[token * a.step] = sum_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    v = load_as<V>(dy + i) * load_as<V>(a.weight + i) * (load_as<V>(x + i) * r);
    return v;
  });
}

// With n = x r: dx = r (dy weight - n products / all), sums += dy n.
template <class T>
void token_back(const HeadsNormArgs& a, std::int64_t token, float* sums) {
  const T* const x = static_cast<const T*>(a.x) + token * a.stride;
  const T* const dy = static_cast<const T*>(a.dy) + token * a.stride;
  T* const dx = static_cast<T*>(a.dx) + token * a.stride;
  const float r = heads_inverse_rms(a, token);
  const float mean = a.products[token * a.step] / static_cast<float>(a.all);
  for_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    const V n = load_as<V>(x + i) * r, g = load_as<V>(dy + i);
    if (sums != nullptr) store(sums + i, load_as<V>(sums + i) + g * n);
    store(dx + i, r * (g * load_as<V>(a.weight + i) - n * mean));
  });
}

template <class T>
void heads_back(const HeadsNormArgs& a) {
  const std::int64_t chunks = (a.tokens + kHeadsNormChunk - 1) / kHeadsNormChunk;
#pragma omp parallel for schedule(static) if (a.tokens * a.width > kAlone)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    float* const sums = a.dweight == nullptr ? nullptr : a.partial + chunk * a.width;
    for (std::int64_t i = 0; sums != nullptr && i < a.width; ++i)
      sums[i] = 0;
    const std::int64_t begin = chunk * kHeadsNormChunk;
    const std::int64_t end =
        begin + kHeadsNormChunk < a.tokens ? begin + kHeadsNormChunk : a.tokens;
    for (std::int64_t token = begin; token < end; ++token)
      token_back<T>(a, token, sums);
  }
  if (a.dweight == nullptr) return;
  for (std::int64_t i = 0; i < a.width; ++i)
    a.dweight[i] = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t i = 0; i < a.width; ++i)
      a.dweight[i] += a.partial[chunk * a.width + i];
}

}  // namespace

void heads_norm_forward(const HeadsNormArgs& args) {
  by_type(args.type, [&](auto type) {
#pragma omp parallel for schedule(static) if (args.tokens * args.width > kAlone)
    for (std::int64_t token = 0; token < args.tokens; ++token)
      norm_token<decltype(type)>(args, token);
  });
}

void heads_norm_products(const HeadsNormArgs& args) {
  by_type(args.type, [&](auto type) {
#pragma omp parallel for schedule(static) if (args.tokens * args.width > kAlone)
    for (std::int64_t token = 0; token < args.tokens; ++token)
      product_of_token<decltype(type)>(args, token);
  });
}

void heads_norm_gradients(const HeadsNormArgs& args) {
  by_type(args.type, [&](auto type) { heads_back<decltype(type)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
