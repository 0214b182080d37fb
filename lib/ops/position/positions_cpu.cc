// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/position/position_kernels.h"

namespace vfm::ops::VFM_ISA {

namespace {
constexpr float kEpsilon = 1e-6f;
}

void positions_forward(const PositionArgs& a, const std::int32_t* places) {
  const std::int64_t width = a.width;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    const float* t = a.tables[0] + places[3 * token] * width;
    const float* h = a.tables[1] + places[3 * token + 1] * width;
    const float* w = a.tables[2] + places[3 * token + 2] * width;
    float* result = a.result + token * width;
    const float squares = sum_lanes(width, [&](auto v, std::int64_t i) {
      using V = decltype(v);
      v = load_as<V>(t + i) + load_as<V>(h + i) + load_as<V>(w + i);
      store(result + i, v);
      return v * v;
    });
    const float norm =
        a.unit ? kEpsilon + __builtin_sqrtf(squares / static_cast<float>(width)) : 1.f;
    a.norms[token] = norm;
    const float inverse = 1.f / norm;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      result[i] *= inverse;
  }
}

// With y = e / n and n = eps + rms(e): de = (dy - y mean(dy y) n / rms(e)) / n. Tokens are taken in
// order, and the threads share the columns, so the sums do not depend on their number.
void positions_backward(const PositionArgs& a, const std::int32_t* places, float* scratch) {
  const std::int64_t width = a.width;
  constexpr std::int64_t kColumns = 64;
  const std::int64_t blocks = (width + kColumns - 1) / kColumns;
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t token = 0; token < a.tokens; ++token) {
    const float* y = a.result + token * width;
    const float* dy = a.dy + token * width;
    float product = 0;
#pragma omp simd reduction(+ : product)
    for (std::int64_t i = 0; i < width; ++i)
      product += dy[i] * y[i];
    const float norm = a.norms[token], rms = norm - kEpsilon;
    // e = 0 has no direction: its norm counts as a constant there.
    const float along =
        a.unit && rms > 0 ? product / static_cast<float>(width) * (norm / rms) : 0.f;
    scratch[token] = along;
  }
#pragma omp parallel for schedule(static) if (a.tokens * width > 8192)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t begin = block * kColumns;
    const std::int64_t end = begin + kColumns < width ? begin + kColumns : width;
    for (std::int64_t token = 0; token < a.tokens; ++token) {
      const float* y = a.result + token * width;
      const float* dy = a.dy + token * width;
      float* t = a.gradients[0] + places[3 * token] * width;
      float* h = a.gradients[1] + places[3 * token + 1] * width;
      float* w = a.gradients[2] + places[3 * token + 2] * width;
      const float along = scratch[token], inverse = 1.f / a.norms[token];
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float d = (dy[i] - y[i] * along) * inverse;
        t[i] += d;
        h[i] += d;
        w[i] += d;
      }
    }
  }
}

}  // namespace vfm::ops::VFM_ISA
