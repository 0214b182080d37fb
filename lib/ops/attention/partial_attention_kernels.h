// The kernels behind partial_attention.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// Plain pointers of one call: rows first to end - 1 of a part's results, and the sum of the
/// earlier parts.
struct MergeAttentionArgs {
  int heads = 0, head_dim = 0;
  std::int64_t queries = 0;  // S
  std::int64_t first = 0, end = 0;
  bool begins = false;                 // true for the first part: no sum yet
  const float* out = nullptr;          // [S, H K]; null if these rows see no key of the part
  const float* log_sum_exp = nullptr;  // [H, S]
  float* out_sum = nullptr;            // [S, H K]
  float* log_sum_exp_sum = nullptr;    // [H, S]
};

VFM_ISA_KERNEL(void, merge_attention, const MergeAttentionArgs& args)

}  // namespace vfm::ops
