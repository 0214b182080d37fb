// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/add_bias_kernels.h"

namespace vfm::ops {
namespace {

// Below so many elements one thread goes through them sooner than several are woken.
constexpr std::int64_t kBiasAlone = 16384;

}  // namespace

void cpu::add_bias(float* y, std::int64_t rows, std::int64_t stride, const float* bias,
                   std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = y + row * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      to[i] += bias[i];
  }
}

}  // namespace vfm::ops
