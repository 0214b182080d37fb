// SPDX-License-Identifier: Apache-2.0
#include "nn/head_exchange.h"

#include <numeric>

#include "nn/columns.h"
#include "ops/attention/attention_fp8.h"
#include "ops/pointwise/join.h"

namespace vfm::nn {
namespace {

/// Of the columns of all heads those that are this rank's afterwards.
Tensor own_heads(const Tensor& largest, const HeadExchange& exchange) {
  const int ranks = exchange.group->size(), rank = exchange.group->rank();
  const std::int64_t all =
      std::accumulate(exchange.heads.begin(), exchange.heads.end(), std::int64_t{0});
  const Tensor own({largest.size(0), all / ranks}, largest.dtype(), largest.device());
  std::int64_t begin = 0, to = 0;
  for (const std::int64_t heads : exchange.heads) {
    ops::copy_columns(largest, begin + heads / ranks * rank, own, to, heads / ranks);
    begin += heads, to += heads / ranks;
  }
  return own;
}

}  // namespace

LowHeads round_heads(const Tensor& qkv, const HeadExchange& exchange) {
  const ops::HeadLayout here{exchange.own, exchange.head_dim};
  const Tensor own = ops::largest_of_heads(qkv, here);
  const Tensor parts({exchange.all->size() * own.size(0), own.size(1)}, DType::i32, own.device());
  exchange.all->all_gather(own, parts).wait();
  LowHeads low;
  low.largest = ops::largest_of_parts(parts, own.size(0));
  low.codes = ops::quantize_heads(qkv, here, low.largest);
  return low;
}

LowHeads exchange_heads(ops::Tape& tape, const LowHeads& low, const HeadExchange& exchange) {
  if (exchange.group == nullptr) return low;
  return {ops::run_exchange(tape, low.codes, exchange.to_heads), own_heads(low.largest, exchange)};
}

}  // namespace vfm::nn
