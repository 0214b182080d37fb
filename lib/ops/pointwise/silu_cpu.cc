// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/pointwise/silu_kernels.h"

namespace vfm::ops::VFM_ISA {
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

}  // namespace vfm::ops::VFM_ISA
