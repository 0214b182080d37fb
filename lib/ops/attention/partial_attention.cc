// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/partial_attention.h"

#include "base/error.h"
#include "ops/attention/attention_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

void AttentionSum::add(const Tensor& q, const Tensor& kv, const AttentionPack& pack) {
  add(attend_part(q, kv, pack), pack);
}

// Samples with keys in the part, and those without, come in runs: a call of the kernel each.
void AttentionSum::add(const PartOfAttention& part, const AttentionPack& pack) {
  if (part.out.dtype() != DType::f32)
    fail("attention in parts: a part of {} is rounded, and parts are f32 until they are one",
         dtype_name(part.out.dtype()));
  const bool begins = !out_.defined();
  if (begins) {
    out_ = Tensor(part.out.shape(), DType::f32, part.out.device());
    log_sum_exp_ = Tensor(part.log_sum_exp.shape(), DType::f32, part.out.device());
  }
  if (out_.shape() != part.out.shape())
    fail("attention in parts: {} does not add to {}", to_string(part.out.shape()),
         to_string(out_.shape()));
  MergeAttentionArgs args;
  args.heads = pack.heads, args.head_dim = pack.head_dim;
  args.queries = part.out.size(0);
  args.begins = begins;
  args.log_sum_exp = part.log_sum_exp.data<float>();
  args.out_sum = out_.data<float>();
  args.log_sum_exp_sum = log_sum_exp_.data<float>();
  const std::size_t samples = pack.key_lengths.size();
  for (std::size_t next = 0; next < samples; args.first = args.end) {
    const bool keys = pack.key_lengths[next] > 0;
    for (; next < samples && (pack.key_lengths[next] > 0) == keys; ++next)
      args.end += pack.query_lengths[next];
    args.out = keys ? part.out.data<float>() : nullptr;
    if (args.end == args.first || (!keys && !begins)) continue;
    const Tensor sums = out_.rows(args.first, args.end);
    const Touching tensors(sums, keys ? part.out.rows(args.first, args.end) : Tensor(),
                           begins ? Tensor() : sums);
    VFM_RUN(tensors, merge_attention, args);
  }
}

}  // namespace vfm::ops
