// Queries, keys and values of tokens that ranks share, as E4M3: what attention in FP8 makes of them
// is what it makes where all of it is on one rank.
//
// The ranks exchange the largest magnitude of each head of each sample, 4 bytes each, so all round
// with the scales of the whole (ops/attention/head_codes.h). Then codes travel, a byte an element:
// from a part of the tokens to a part of the heads, as rows_to_columns() has it
// (nn/collectives.h); or keys and values to ranks with other queries (nn/ring_attention.h).
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

/// Heads in FP8: [S, H K] E4M3, and [R, H] i32, the largest magnitudes that their scales follow
/// from.
struct LowHeads {
  Tensor codes, largest;
};

struct HeadExchange {
  dist::Group* all = nullptr;     ///< who has the samples' tokens; must outlive it
  std::vector<std::int64_t> own;  ///< tokens of this rank, by sample
  /// Heads of queries, of keys and of values, and their size.
  std::vector<std::int64_t> heads;
  int head_dim = 0;
  /// Ranks among which heads are dealt out, and rows_to_columns() of them; or none.
  dist::Group* group = nullptr;
  ops::Exchange to_heads;
  explicit operator bool() const { return all != nullptr; }
};

/// qkv bf16 of this rank's tokens. A collective of `all`.
LowHeads round_heads(const Tensor& qkv, const HeadExchange& exchange);
/// The same of more tokens and fewer heads: of each kind `heads` / ranks. A collective of `group`.
LowHeads exchange_heads(ops::Tape& tape, const LowHeads& low, const HeadExchange& exchange);

}  // namespace vfm::nn
