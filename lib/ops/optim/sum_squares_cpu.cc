// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/sum_squares_kernels.h"

namespace vfm::ops::VFM_ISA {

double sum_squares_chunk(const float* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace vfm::ops::VFM_ISA
