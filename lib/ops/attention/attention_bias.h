// Adds the bias of relative positions to a block of attention scores. Include only in x_cpu.cc (see
// ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_kernels.h"
#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// Returns the address of a head's bias for distance 0; null without a bias.
VFM_INLINE const float* bias_of(const AttentionArgs& a, int head) {
  return a.bias ? a.bias + head * (2 * a.bias_reach - 1) + a.bias_reach - 1 : nullptr;
}

/// scores [keys, columns] += bias[query - key] for `count` queries from `first_query` on.
VFM_INLINE void add_bias(const float* bias, float* scores, std::int64_t columns,
                         std::int64_t first_key, std::int64_t keys, std::int64_t first_query,
                         std::int64_t count) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const float* row = bias + (first_query - first_key - j);
    float* to = scores + j * columns;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      to[i] += row[i];
  }
}

}  // namespace vfm::ops::VFM_ISA
