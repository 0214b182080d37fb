// The tokens of a pack that each rank has if ranks share a network (nn/network_layout.h), and the
// exchanges between ranks. Shape letters: S tokens of this rank, H heads of queries, G heads of
// keys, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nn/frame_plan.h"
#include "nn/network_layout.h"
#include "nn/ring_attention.h"
#include "ops/attention/attention.h"
#include "ops/exchange.h"
#include "ops/pointwise/row_order.h"
#include "ops/pointwise/row_ranges.h"

namespace vfm::nn {

/// The tokens of a pack that this rank has. Ranges are ranges of the pack's rows, one or two for
/// each sample. Ranges may be empty.
struct TokenShard {
  /// For samples of these lengths. With `causal` a sample is cut into twice as many even parts as
  /// cp has ranks, and a rank has two of them, mirror images of each other, so that the queries of
  /// all ranks see equally many keys. Throws Error if a rank would have no token.
  TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout, Device device,
             bool causal = false);
  /// For parts that end at frames. A rank may have no token.
  TokenShard(const FramePlan& plan, const NetworkLayout& layout, Device device);

  std::vector<ops::RowRange> sequence;  ///< rows of this rank's part of cp; it has their queries
  std::vector<ops::RowRange> own;       ///< rows of `sequence` that are here between sub-layers
  std::vector<std::int64_t> tp_rows, cp_rows;       ///< number of rows of each rank, along the axis
  std::vector<std::vector<std::int64_t>> cp_parts;  ///< cp_rows by range; empty if not in order
  /// Brings the rows of the parts of cp, one after the other, into the pack's own order. If keys go
  /// round, only the parts of ranks that exchange tokens for heads with this rank are ordered.
  ops::RowOrder order;
  /// If keys go round: the number of tokens at each place of the ring, by sample, and this rank's
  /// place.
  std::vector<std::vector<std::int64_t>> ring;
  std::size_t place = 0;
  Device device = Device::cpu;

 private:
  using Parts = std::vector<std::vector<ops::RowRange>>;  // by rank of cp
  TokenShard(const Parts& parts, const NetworkLayout& layout, Device device);
};

/// The exchanges of layers with other ranks. None is set if one rank has the whole network.
struct TokenExchanges {
  TokenExchanges() = default;
  TokenExchanges(const HeadShape& shape, const NetworkLayout& layout, const TokenShard& shard);

  ops::Exchange gather, sum;  ///< tp: gather rows for a matrix, and sum its results
  ops::Exchange keys;         ///< cp: gathers keys and values of all tokens, in the pack's order
  ops::Exchange to_heads, to_tokens;  ///< cp: exchange tokens for heads, and back
  Ring ring;                          ///< cp: keys and values go round

  bool any_of_cp() const { return keys || to_heads || ring; }
};

/// Returns the self-attention over the pack for this rank's tokens and heads. `qkv` are this rank's
/// queries, keys and values, normed and rotated, [S, (H + 2 G) K]. `attend` computes the attention
/// if this rank has all tokens.
template <class Attend>
Tensor shared_attention(ops::Tape& tape, Tensor qkv, const TokenExchanges& exchanges,
                        const ops::AttentionPack& pack, const Attend& attend) {
  if (exchanges.keys)
    return ops::attention_over(tape, qkv, ops::run_exchange(tape, qkv, exchanges.keys), pack);
  qkv = ops::run_exchange(tape, qkv, exchanges.to_heads);
  const Tensor attended =
      exchanges.ring ? ring_attention(tape, qkv, exchanges.ring) : attend(std::move(qkv));
  return ops::run_exchange(tape, attended, exchanges.to_tokens);
}

}  // namespace vfm::nn
