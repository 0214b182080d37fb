// SPDX-License-Identifier: Apache-2.0
#include "nn/head_exchange.h"

#include <numeric>

#include "nn/columns.h"
#include "ops/attention/head_codes.h"

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
    copy_columns(largest, begin + heads / ranks * rank, own, to, heads / ranks);
    begin += heads, to += heads / ranks;
  }
  return own;
}

}  // namespace

Tensor exchange_heads_in_fp8(ops::Tape& tape, const Tensor& qkv, const HeadExchange& exchange,
                             const std::vector<std::int64_t>& lengths) {
  const ops::HeadLayout here{exchange.own, exchange.head_dim};
  const Tensor own = ops::largest_of_heads(qkv, here);
  const Tensor largest({exchange.group->size() * own.size(0), own.size(1)}, DType::i32,
                       own.device());
  exchange.group->all_gather(own, largest).wait();
  const Tensor codes =
      ops::run_exchange(tape, ops::quantize_heads(qkv, here, largest), exchange.to_heads);
  return ops::restore_heads(codes, {lengths, exchange.head_dim}, own_heads(largest, exchange));
}

}  // namespace vfm::nn
