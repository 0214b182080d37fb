// SPDX-License-Identifier: Apache-2.0
#include "ops/modulate_cpu.h"

#include "ops/simd.h"

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
  float sum = 0;
  if (a.branch && a.extra) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = x[i] + gate[i] * load(branch + i) + extra[i];
      stream[i] = v;
      sum += v;
    }
  } else if (a.branch) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = x[i] + gate[i] * load(branch + i);
      stream[i] = v;
      sum += v;
    }
  } else if (a.extra) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = x[i] + extra[i];
      stream[i] = v;
      sum += v;
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i)
      sum += x[i];
  }
  return sum;
}

template <class T>
void forward(const ModulateArgs& a) {
  const std::int64_t width = a.width;
  const float inverse = 1.f / static_cast<float>(width);
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    float* stream = a.stream + token * width;
    const float* gate = a.gate + (a.gate ? a.rows[token] * a.gate_stride : 0);
    const float* shift = a.modulation + a.rows[token] * a.modulation_stride;
    const float* scale = shift + width;
    T* normed = static_cast<T*>(a.normed) + token * width;
    const float mean = residual<T>(a, token, gate, stream) * inverse;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i)
      squares += (stream[i] - mean) * (stream[i] - mean);
    const float rstd = 1.f / __builtin_sqrtf(squares * inverse + a.epsilon);
    a.moments[2 * token] = mean;
    a.moments[2 * token + 1] = rstd;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      store(normed + i, (stream[i] - mean) * rstd * (1.f + scale[i]) + shift[i]);
  }
}

// One token. With y = normed, n = (stream - mean) rstd and g = dy (1 + scale):
// dstream += rstd (g - mean(g) - n mean(g n)).
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
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < width; ++i) {
    const float d = load(dy + i);
    const float n = (stream[i] - mean) * rstd;
    const float g = d * (1.f + scale[i]);
    dshift[i] += d;
    dscale[i] += d * n;
    sum += g;
    product += g * n;
  }
  sum *= inverse;
  product *= inverse;
  if (b.dstream) {
    const float* dstream = b.dstream + token * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float n = (stream[i] - mean) * rstd;
      dx[i] = dstream[i] + rstd * (load(dy + i) * (1.f + scale[i]) - sum - n * product);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float n = (stream[i] - mean) * rstd;
      dx[i] = rstd * (load(dy + i) * (1.f + scale[i]) - sum - n * product);
    }
  }
  if (!a.branch) return;
  const T* branch = static_cast<const T*>(a.branch) + token * width;
  T* dbranch = static_cast<T*>(b.dbranch) + token * width;
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    dgate[i] += dx[i] * load(branch + i);
    store(dbranch + i, dx[i] * gate[i]);
  }
}

template <class T>
void backward(const ModulateBackwardArgs& b) {
  const ModulateArgs& a = b.forward;
  const std::int64_t width = a.width;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t r = 0; r < b.run_count; ++r) {
    const ModulateRun& run = b.runs[r];
    float* sums = b.partial + r * 3 * width;
    for (std::int64_t i = 0; i < 3 * width; ++i)
      sums[i] = 0;
    const float* scale = a.modulation + run.row * a.modulation_stride + width;
    const float* gate = a.gate + (a.gate ? run.row * a.gate_stride : 0);
    for (std::int64_t token = run.begin; token < run.end; ++token)
      token_backward<T>(b, token, scale, gate, sums, sums + width, sums + 2 * width);
  }
}

}  // namespace

void modulate_forward(const ModulateArgs& args) {
  args.low ? forward<bf16>(args) : forward<float>(args);
}

void modulate_backward(const ModulateBackwardArgs& args) {
  args.forward.low ? backward<bf16>(args) : backward<float>(args);
}

void modulate_reduce(const ModulateBackwardArgs& args, float* sums) {
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
