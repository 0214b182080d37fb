// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_merge.h"
#include "ops/attention/partial_attention_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

void merge_attention(const MergeAttentionArgs& a) {
  kernels::AttentionMerge call;
  call.heads = a.heads, call.head_dim = a.head_dim;
  call.queries = a.queries;
  call.first = a.first, call.end = a.end;
  call.begins = a.begins;
  call.out = a.out, call.log_sum_exp = a.log_sum_exp;
  call.out_sum = a.out_sum, call.log_sum_exp_sum = a.log_sum_exp_sum;
  check_gpu(kernels::attention_merge(call, compute_stream()), "merge parts of attention");
}

}  // namespace vfm::ops::cuda
