// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_kernels.h"
#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Of one query and head.
VFM_INLINE void merge_row(const MergeAttentionArgs& a, std::int64_t row, std::int64_t head) {
  float* const to = a.out_sum + (row * a.heads + head) * a.head_dim;
  float* const total = a.log_sum_exp_sum + head * a.queries + row;
  if (a.out == nullptr) {
    for (int d = 0; d < a.head_dim; ++d)
      to[d] = 0;
    *total = -__builtin_inff();
    return;
  }
  const float* const from = a.out + (row * a.heads + head) * a.head_dim;
  const float here = a.log_sum_exp[head * a.queries + row];
  if (a.begins) {
    for (int d = 0; d < a.head_dim; ++d)
      to[d] = from[d];
    *total = here;
    return;
  }
  const float before = *total, top = before > here ? before : here;  // `here` is finite, or NaN
  const float both =
      top + __builtin_logf(__builtin_expf(before - top) + __builtin_expf(here - top));
  const float keep = __builtin_expf(before - both), take = __builtin_expf(here - both);
#pragma omp simd
  for (int d = 0; d < a.head_dim; ++d)
    to[d] = keep * to[d] + take * from[d];
  *total = both;
}

}  // namespace

void merge_attention(const MergeAttentionArgs& a) {
#pragma omp parallel for schedule(static) if ((a.end - a.first) * a.heads * a.head_dim > kAlone)
  for (std::int64_t row = a.first; row < a.end; ++row)
    for (int head = 0; head < a.heads; ++head)
      merge_row(a, row, head);
}

}  // namespace vfm::ops::VFM_ISA
