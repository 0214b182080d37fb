// The ranks that share the forward and backward of one network, and what of a pack is whose.
//
// Tensor parallelism (tp): a rank has some heads of each attention and some of the MLP's hidden
// columns; between sub-layers, where nothing depends on neighbours, it has some of the tokens
// (sequence parallelism), which are gathered before a matrix and summed after it.
// Context parallelism (cp): a rank has a part of each sample's tokens. For attention the keys and
// values of all are gathered, or queries, keys and values change places: all tokens of some heads.
// A token between sub-layers belongs to one rank of tp and cp alone, and so its part of the loss.
// Sources: Korthikanti et al., "Reducing activation recomputation in large transformer models"
// (2022); Llama Team, "The Llama 3 herd of models" (2024), section 3.3.2, for the gathered keys;
// Jacobs et al., "DeepSpeed Ulysses" (2023), for the heads.
// Shape letters: S tokens of the pack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nn/placement.h"
#include "ops/attention/attention.h"
#include "ops/exchange.h"
#include "ops/pointwise/row_order.h"
#include "ops/pointwise/row_ranges.h"

namespace vfm::dist {
class Group;
}

namespace vfm::models {

struct NetworkConfig;

/// What ranks of cp exchange for self-attention.
enum class CpKind { gather, all_to_all };

/// Null: the axis has one rank. Groups must outlive the network.
struct NetworkLayout {
  dist::Group *tp = nullptr, *cp = nullptr;
  CpKind cp_kind = CpKind::gather;

  int tp_rank() const;
  int tp_size() const;
  int cp_rank() const;
  int cp_size() const;
  bool alone() const { return tp_size() * cp_size() == 1; }
  /// Whether attention sees the whole pack's tokens, of fewer heads.
  bool deals_heads() const { return cp_size() > 1 && cp_kind == CpKind::all_to_all; }
  /// Ranks that the heads of self-attention are dealt out to.
  int heads_ranks() const { return tp_size() * (deals_heads() ? cp_size() : 1); }
  /// The rank's part of a matrix along `dim`.
  nn::Cut cut(int dim) const { return {dim, tp_rank(), tp_size()}; }
  /// Throws Error{usage}, with the nearest layout that can be, for one that the network cannot
  /// have.
  void check(const NetworkConfig& config) const;
};

/// Whose the tokens of a pack are. Ranges are of the pack's rows, one a sample, some empty.
struct TokenShard {
  /// For samples of these lengths. Throws Error if a rank would have no token at all.
  TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout, Device device);

  std::vector<ops::RowRange> sequence;  ///< of this rank's cp part: what its attention asks for
  std::vector<ops::RowRange> own;       ///< of those, this rank's between sub-layers
  std::vector<std::int64_t> tp_rows, cp_rows;  ///< rows of each rank of the axis
  /// From the cp parts one after the other to the pack's own order: [S].
  ops::RowOrder order;
};

/// What layers exchange; nothing where one rank has the network.
struct TokenExchanges {
  TokenExchanges() = default;
  TokenExchanges(const NetworkConfig& config, const NetworkLayout& layout, const TokenShard& shard);

  ops::Exchange gather, sum;  ///< tp: rows for a matrix, and its results for the rows
  ops::Exchange keys;         ///< cp: keys and values of all tokens, in the pack's order; or
  ops::Exchange to_heads, to_tokens;  ///< all tokens of some heads, and the way back

  bool any_of_cp() const { return keys || to_heads; }
};

/// Self-attention of queries, keys and values [S, (H + 2 G) K], normed and rotated, of this rank's
/// tokens and heads; `attend` does it where all tokens of the pack are there.
template <class Attend>
Tensor shared_attention(ops::Tape& tape, Tensor qkv, const TokenExchanges& exchanges,
                        const ops::AttentionPack& pack, const Attend& attend) {
  if (exchanges.keys)
    return ops::attention_over(tape, qkv, ops::run_exchange(tape, qkv, exchanges.keys), pack);
  qkv = ops::run_exchange(tape, qkv, exchanges.to_heads);
  return ops::run_exchange(tape, attend(std::move(qkv)), exchanges.to_tokens);
}

}  // namespace vfm::models
