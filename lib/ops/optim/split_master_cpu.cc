// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/split_master_kernels.h"
#include "ops/optim/split_weights.h"

namespace vfm::ops::VFM_ISA {
void split_weights(const float* weights, bf16* high, bf16* low, std::int64_t n) {
  const SplitWeights split{high, low};
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    split.set(i, weights[i]);
}

void join_weights(const bf16* high, const bf16* low, float* weights, std::int64_t n) {
  const SplitWeights split{const_cast<bf16*>(high), const_cast<bf16*>(low)};
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    weights[i] = split.get(i);
}

}  // namespace vfm::ops::VFM_ISA
