// SPDX-License-Identifier: Apache-2.0
#include "nn/shared_attention_fp8.h"

#include "nn/columns.h"
#include "ops/attention/attention_fp8.h"

namespace vfm::nn {
namespace {

Tensor over_gathered_keys(ops::Tape& tape, const Tensor& qkv, const LowHeads& low,
                          const ops::Exchange& keys, const ops::AttentionPack& pack) {
  const std::int64_t queries = pack.heads, of_keys = 2 * std::int64_t{pack.key_heads};
  const Tensor largest = take_columns(low.largest, {queries, of_keys, queries + of_keys});
  const Tensor kv = ops::restore_heads(ops::run_exchange(tape, low.codes, keys),
                                       {pack.key_lengths, pack.head_dim}, largest);
  const Tensor q = take_columns(qkv, {0, queries * pack.head_dim, qkv.size(1)});
  return ops::attend_part_fp8(q, kv, pack, low.largest, DType::bf16).out;
}

}  // namespace

Tensor shared_attention_fp8(ops::Tape& tape, const Tensor& qkv, const TokenExchanges& exchanges,
                            const ops::AttentionPack& pack) {
  const LowHeads low = round_heads(qkv, exchanges.low_heads);
  if (exchanges.keys) return over_gathered_keys(tape, qkv, low, exchanges.keys, pack);
  const LowHeads some = exchange_heads(tape, low, exchanges.low_heads);
  const auto attended = [&] {
    if (exchanges.ring) return ring_attention_fp8(some, exchanges.ring);
    return ops::self_attention_fp8(
        tape, ops::restore_heads(some.codes, {pack.query_lengths, pack.head_dim}, some.largest),
        pack);
  };
  return ops::run_exchange(tape, attended(), exchanges.to_tokens);
}

}  // namespace vfm::nn
