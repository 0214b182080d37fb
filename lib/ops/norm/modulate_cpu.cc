// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/norm/modulate_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// stream = x + gate * branch + extra; returns its sum.
template <class T>
VFM_INLINE float residual(const ModulateArgs& a, std::int64_t token, const float* gate,
                          float* stream) {
  const std::int64_t width = a.width;
  const float* x = a.x + token * width;
  const T* branch = static_cast<const T*>(a.branch) + (a.branch ? token * width : 0);
  const float* extra = a.extra + (a.extra ? token * width : 0);
  if (a.branch && a.extra)
    return sum_lanes(width, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(x + i) + load_as<V>(gate + i) * load_as<V>(branch + i) + load_as<V>(extra + i);
      store(stream + i, v);
      return v;
    });
  if (a.branch)
    return sum_lanes(width, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(x + i) + load_as<V>(gate + i) * load_as<V>(branch + i);
      store(stream + i, v);
      return v;
    });
  if (a.extra)
    return sum_lanes(width, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(x + i) + load_as<V>(extra + i);
      store(stream + i, v);
      return v;
    });
  return sum_lanes(width, [&](auto v, std::int64_t i) { return load_as<decltype(v)>(x + i); });
}

template <class T>
void modulated_tokens(const ModulateArgs& a) {
  const std::int64_t width = a.width;
  const float inverse = 1.f / static_cast<float>(width);
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    float* stream = a.stream + token * width;
    const float* gate = a.gate + (a.gate ? a.rows[token] * a.gate_stride : 0);
    const float sum = residual<T>(a, token, gate, stream);
    if (!a.normed) continue;
    const float* shift = a.modulation + a.rows[token] * a.modulation_stride;
    const float* scale = shift + width;
    T* normed = static_cast<T*>(a.normed) + token * width;
    const float mean = a.centred ? sum * inverse : 0.f;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i)
      squares += (stream[i] - mean) * (stream[i] - mean);
    const float rstd = 1.f / __builtin_sqrtf(squares * inverse + a.epsilon);
    a.moments[2 * token] = mean;
    a.moments[2 * token + 1] = rstd;
    for_lanes(width, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = (load_as<V>(stream + i) - mean) * rstd;
      store(normed + i, v * (1.f + load_as<V>(scale + i)) + load_as<V>(shift + i));
    });
  }
}

// One token. With y = normed, n = (stream - mean) rstd and g = dy (1 + scale):
// dstream += rstd (g - mean(g) - n mean(g n)); without mean(g) where it was not centred.
template <class T>
VFM_INLINE void token_backward(const ModulateBackwardArgs& b, std::int64_t token,
                               const float* scale, const float* gate, float* dshift, float* dscale,
                               float* dgate) {
  const ModulateArgs& a = b.forward;
  const std::int64_t width = a.width;
  const float inverse = 1.f / static_cast<float>(width);
  const float mean = a.moments[2 * token], rstd = a.moments[2 * token + 1];
  const float* stream = a.stream + token * width;
  const T* dy = static_cast<const T*>(b.dnormed) + token * width;
  float* dx = b.dx + token * width;
  float* dextra = b.dextra + (b.dextra ? token * width : 0);
  const TwoSums sums = two_sums(width, [&](auto v, std::int64_t i, auto& sum, auto& product) {
    using V = decltype(v);
    const V d = load_as<V>(dy + i);
    const V n = (load_as<V>(stream + i) - mean) * rstd;
    const V g = d * (1.f + load_as<V>(scale + i));
    store(dshift + i, load_as<V>(dshift + i) + d);
    store(dscale + i, load_as<V>(dscale + i) + d * n);
    sum += g;
    product += g * n;
  });
  const float sum = a.centred ? sums.first * inverse : 0.f, product = sums.second * inverse;
  const float* dstream = b.dstream + (b.dstream ? token * width : 0);
  const T* branch = static_cast<const T*>(a.branch) + (a.branch ? token * width : 0);
  T* dbranch = static_cast<T*>(b.dbranch) + (a.branch ? token * width : 0);
  for_lanes(width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    const V n = (load_as<V>(stream + i) - mean) * rstd;
    v = rstd * (load_as<V>(dy + i) * (1.f + load_as<V>(scale + i)) - sum - n * product);
    if (b.dstream) v += load_as<V>(dstream + i);
    store(dx + i, v);
    if (b.dextra) store(dextra + i, load_as<V>(dextra + i) + v);
    if (!a.branch) return;
    store(dgate + i, load_as<V>(dgate + i) + v * load_as<V>(branch + i));
    store(dbranch + i, v * load_as<V>(gate + i));
  });
}

// The same where there was no norm.
template <class T>
VFM_INLINE void token_passed(const ModulateBackwardArgs& b, std::int64_t token, const float* gate,
                             float* dgate) {
  const std::int64_t width = b.forward.width, at = token * width;
  const bool gated = b.forward.branch != nullptr;
  const T* branch = static_cast<const T*>(b.forward.branch) + (gated ? at : 0);
  T* dbranch = static_cast<T*>(b.dbranch) + (gated ? at : 0);
  float* dextra = b.dextra + (b.dextra ? at : 0);
  for_lanes(width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    v = load_as<V>(b.dstream + at + i);
    store(b.dx + at + i, v);
    if (b.dextra) store(dextra + i, load_as<V>(dextra + i) + v);
    if (!gated) return;
    store(dgate + i, load_as<V>(dgate + i) + v * load_as<V>(branch + i));
    store(dbranch + i, v * load_as<V>(gate + i));
  });
}

template <class T>
void modulated_tokens_back(const ModulateBackwardArgs& b) {
  const ModulateArgs& a = b.forward;
  const std::int64_t width = a.width;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t r = 0; r < b.run_count; ++r) {
    const RowRun& run = b.runs[r];
    float* sums = b.partial + r * 3 * width;
    for (std::int64_t i = 0; i < 3 * width; ++i)
      sums[i] = 0;
    const float* gate = a.gate + (a.gate ? run.row * a.gate_stride : 0);
    if (!b.dnormed) {
      for (std::int64_t token = run.begin; token < run.end; ++token)
        token_passed<T>(b, token, gate, sums + 2 * width);
      continue;
    }
    const float* scale = a.modulation + run.row * a.modulation_stride + width;
    for (std::int64_t token = run.begin; token < run.end; ++token)
      token_backward<T>(b, token, scale, gate, sums, sums + width, sums + 2 * width);
  }
}

}  // namespace

void modulate_forward(const ModulateArgs& args) {
  by_type(args.type, [&](auto type) { modulated_tokens<decltype(type)>(args); });
}

void modulate_backward(const ModulateBackwardArgs& args) {
  by_type(args.forward.type, [&](auto type) { modulated_tokens_back<decltype(type)>(args); });
}

void modulate_reduce(const ModulateBackwardArgs& args, std::int64_t /*rows*/, float* sums) {
  const std::int64_t wide = 3 * args.forward.width;
  for (std::int64_t r = 0; r < args.run_count; ++r) {
    float* total = sums + args.runs[r].row * wide;
    const float* part = args.partial + r * wide;
#pragma omp simd
    for (std::int64_t i = 0; i < wide; ++i)
      total[i] += part[i];
  }
}

}  // namespace vfm::ops::VFM_ISA
