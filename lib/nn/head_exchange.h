// Queries, keys and values from a part of the tokens to a part of the heads, as E4M3: what
// rows_to_columns() does (nn/collectives.h), in a byte an element, for attention in FP8.
//
// What attention makes of them is what it makes where all of it is on one rank, to the bit: the
// ranks exchange the largest magnitude of each head of each sample first, 4 bytes each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dist/group.h"
#include "ops/exchange.h"
#include "ops/tape.h"

namespace vfm::nn {

struct HeadExchange {
  dist::Group* group = nullptr;   ///< must outlive it
  std::vector<std::int64_t> own;  ///< tokens of this rank, by sample
  /// Heads of queries, of keys and of values before they are dealt out, and their size.
  std::vector<std::int64_t> heads;
  int head_dim = 0;
  ops::Exchange to_heads;  ///< rows_to_columns()
  explicit operator bool() const { return group != nullptr; }
};

/// qkv bf16 [tokens here, sum of heads K] to bf16 [all tokens, the same / ranks]; `lengths`: tokens
/// of all ranks, by sample. A collective.
Tensor exchange_heads_in_fp8(ops::Tape& tape, const Tensor& qkv, const HeadExchange& exchange,
                             const std::vector<std::int64_t>& lengths);

}  // namespace vfm::nn
