// Queries, keys and values in FP8 (E4M3) of tokens that ranks share. Attention in FP8 then gives
// the same as with all tokens on one rank.
//
// The ranks exchange the largest magnitude of each head of each sample, 4 bytes each, so all round
// with the scales of the whole (ops/attention/attention_fp8.h). Then the codes travel, one byte per
// element. They go from a part of the tokens to a part of the heads, as in rows_to_columns()
// (nn/collectives.h), or keys and values go to ranks with other queries (nn/ring_attention.h).
// Shape letters: S rows, H heads of queries, keys and values together, K head dim, R samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dist/group.h"
#include "nn/columns.h"
#include "ops/exchange.h"
#include "ops/tape.h"

namespace vfm::nn {

/// Heads in FP8: codes [S, H K] E4M3, and the largest magnitudes [R, H] i32 that determine their
/// scales.
struct LowHeads {
  Tensor codes, largest;
};

struct HeadExchange {
  dist::Group* all = nullptr;     ///< ranks that share the samples' tokens; must outlive it
  std::vector<std::int64_t> own;  ///< tokens of this rank, by sample
  /// Numbers of heads of queries, of keys and of values.
  std::vector<std::int64_t> heads;
  int head_dim = 0;
  /// Ranks to which heads are dealt, and their rows_to_columns(); null: heads are not dealt.
  dist::Group* group = nullptr;
  ops::Exchange to_heads;
  explicit operator bool() const { return all != nullptr; }
};

/// Rounds `qkv`, bf16, of this rank's tokens. A collective of `all`.
LowHeads round_heads(const Tensor& qkv, const HeadExchange& exchange);
/// Gives more tokens of fewer heads: heads[i] / ranks of each kind. A collective of `group`.
LowHeads exchange_heads(ops::Tape& tape, const LowHeads& low, const HeadExchange& exchange);

}  // namespace vfm::nn
