// SPDX-License-Identifier: Apache-2.0
#include "nn/shared_attention_fp8.h"

#include "nn/columns.h"
#include "nn/low_heads.h"

namespace vfm::nn {

Tensor shared_attention_fp8(ops::Tape& tape, const Tensor& qkv, const TokenExchanges& exchanges,
                            const ops::AttentionPack& pack, dist::Group* ranks) {
  LowHeads low = round_heads(qkv, pack, ranks);
  if (exchanges.keys) {
    const Tensor kv = ops::run_exchange(tape, low.codes, exchanges.keys);
    const std::int64_t width = std::int64_t{pack.heads} * pack.head_dim;
    const Tensor q = take_columns(low.codes, {0, width, qkv.size(1)});
    return ops::cross_attention_codes(q, kv, low.largest, pack);
  }
  low.codes = ops::run_exchange(tape, low.codes, exchanges.to_heads);
  Tensor attended = exchanges.ring ? ring_attention_fp8(low, exchanges.ring)
                                   : ops::self_attention_codes(low.codes, low.largest, pack, true);
  attended = ops::run_exchange(tape, attended, exchanges.to_tokens);
  if (attended.dtype() == DType::bf16) return attended;
  const auto heads = static_cast<int>(attended.size(1) / pack.head_dim);
  return ops::restore_heads(attended, {.values = heads, .head_dim = pack.head_dim}, low.largest);
}

}  // namespace vfm::nn
