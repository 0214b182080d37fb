// The ranks that share the forward and backward of one network, and what of a pack is whose.
//
// Tensor parallelism (tp): a rank has some heads of each attention and some of the MLP's hidden
// columns; between sub-layers, where nothing depends on neighbours, it has some of the tokens
// (sequence parallelism), which are gathered before a matrix and summed after it.
// Context parallelism (cp): a rank has a part of each sample's tokens. What it needs of the others'
// for attention is exchanged in one of four ways (cp_kind.h). In a hybrid (stdit_shard.h) that is
// so for full attention alone. A token between sub-layers belongs to one rank of tp and cp alone,
// and so its part of the loss.
// Pipeline parallelism (pp): a rank has some of the blocks, the first one the embedding, too, the
// last one the head. What all blocks read of the noise levels and positions each rank makes anew.
// Sources: Korthikanti et al., "Reducing activation recomputation in large transformer models"
// (2022). Shape letters: S tokens of the pack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/dit/cp_kind.h"
#include "models/dit/frame_plan.h"
#include "nn/block_shards.h"
#include "nn/head_exchange.h"
#include "nn/placement.h"
#include "nn/ring_attention.h"
#include "ops/attention/attention.h"
#include "ops/exchange.h"
#include "ops/matmul/quantize_rows.h"
#include "ops/pointwise/row_order.h"
#include "ops/pointwise/row_ranges.h"

namespace vfm::dist {
class Group;
}

namespace vfm::models {

struct NetworkConfig;

/// The blocks [begin, end).
struct BlockRange {
  std::size_t begin = 0, end = 0;
};

/// Null: the axis has one rank. Groups must outlive the network.
struct NetworkLayout {
  dist::Group *tp = nullptr, *cp = nullptr;
  CpKind cp_kind = CpKind::gather;
  /// Parts of cp, two or more, end at frames; cp_kind is full attention's alone (stdit_shard.h).
  bool hybrid = false;
  /// The two axes of cp for CpKind::all_to_all_ring: neighbours that exchange tokens for heads, and
  /// ranks that have the same place among those. Else null.
  dist::Group *cp_heads = nullptr, *cp_ring = nullptr;
  nn::StateShares state = {};         ///< whose part of the optimizer's state this rank keeps
  nn::BlockShards* blocks = nullptr;  ///< gathers the blocks' matrices; null: they are all here
  std::optional<ops::RowFormat> quantized = {};  ///< what quantize() makes of blocks' matrices
  int tp_chunks = 1;           ///< of rows along tp, beside products (nn/chunked_rows.h)
  dist::Group* fp8 = nullptr;  ///< who rounds to FP8 with one scale; null: this rank alone
  bool by_sample = false;      ///< heads of few samples are dealt out for each by itself
  dist::Group* pp = nullptr;
  /// Of pp the blocks of each chunk of the network, one after the other: rank r has the chunks r,
  /// pp + r, ...
  std::vector<int> stages = {};

  int tp_rank() const;
  int tp_size() const;
  int cp_rank() const;
  int cp_size() const;
  int pp_rank() const;
  int pp_size() const;
  bool first_stage() const { return pp_rank() == 0; }
  bool last_stage() const { return pp_rank() + 1 == pp_size(); }
  /// Of a network of so many blocks those of this rank's chunks; all, where there is no pipeline.
  std::vector<BlockRange> chunks(int count) const;
  bool has_block(int i, int count) const;  ///< whether block `i` of so many is this rank's
  /// Whether this is the first of those that share tokens and heads; and whether it shares neither.
  bool first() const { return tp_rank() == 0 && cp_rank() == 0; }
  bool alone() const { return tp_size() * cp_size() == 1; }
  /// Whether attention sees the whole pack's tokens, of fewer heads.
  bool deals_heads() const { return cp_size() > 1 && cp_kind == CpKind::all_to_all; }
  /// Who exchanges tokens for heads with this rank, and among whom keys go round; null: nobody.
  dist::Group* heads_group() const;
  dist::Group* ring_group() const;
  int heads_ranks() const;  ///< ranks that the heads of self-attention are dealt out to
  /// The rank's part of a matrix along `dim`.
  nn::Cut cut(int dim) const { return {dim, tp_rank(), tp_size()}; }
  /// Throws Error{usage}, with the nearest layout that can be, for one that the network cannot
  /// have.
  void check(const NetworkConfig& config) const;
  /// The same for one of so many heads of queries, and of keys and values.
  void check_heads(int heads, int key_heads) const;
};

/// Whose the tokens of a pack are. Ranges are of the pack's rows, one a sample or two, some empty.
struct TokenShard {
  /// For samples of these lengths. Causal ones have two ranges a sample: of 2 cp parts the rank's
  /// and its mirror image, so that all queries see as many keys. Throws Error for a rank without.
  TokenShard(std::span<const std::int64_t> lengths, const NetworkLayout& layout, Device device,
             bool causal = false);
  /// For parts that end at frames: a rank may have no token.
  TokenShard(const FramePlan& plan, const NetworkLayout& layout, Device device);

  std::vector<ops::RowRange> sequence;  ///< of this rank's cp part: what its attention asks for
  std::vector<ops::RowRange> own;       ///< of those, this rank's between sub-layers
  std::vector<std::int64_t> tp_rows, cp_rows;  ///< rows of each rank of the axis, or of cp_heads
  std::vector<std::vector<std::int64_t>> cp_parts;  ///< cp_rows by range, if these are in order
  /// From the parts of cp, one after the other, to the pack's own order; where keys go round only
  /// those of the ranks that exchange tokens for heads with this one.
  ops::RowOrder order;
  /// Where keys go round: the tokens that are at each place, by sample, and this rank's place.
  std::vector<std::vector<std::int64_t>> ring;
  std::size_t place = 0;
  Device device = Device::cpu;

 private:
  using Parts = std::vector<std::vector<ops::RowRange>>;  // by rank of cp
  TokenShard(const Parts& parts, const NetworkLayout& layout, Device device);
};

/// What layers exchange; nothing where one rank has the network.
struct TokenExchanges {
  TokenExchanges() = default;
  TokenExchanges(const NetworkConfig& config, const NetworkLayout& layout, const TokenShard& shard);

  ops::Exchange gather, sum;  ///< tp: rows for a matrix, and its results for the rows
  ops::Exchange keys;         ///< cp: keys and values of all tokens, in the pack's order; or
  ops::Exchange to_heads, to_tokens;  ///< more tokens of some heads, and the way back
  nn::HeadExchange low_heads;         ///< cp: what is exchanged in FP8
  nn::Ring ring;                      ///< keys and values that go round

  bool any_of_cp() const { return keys || to_heads || ring; }
};

/// Self-attention of queries, keys and values [S, (H + 2 G) K], normed and rotated, of this rank's
/// tokens and heads; `attend` does it where all tokens of the pack are there.
template <class Attend>
Tensor shared_attention(ops::Tape& tape, Tensor qkv, const TokenExchanges& exchanges,
                        const ops::AttentionPack& pack, const Attend& attend) {
  if (exchanges.keys)
    return ops::attention_over(tape, qkv, ops::run_exchange(tape, qkv, exchanges.keys), pack);
  qkv = ops::run_exchange(tape, qkv, exchanges.to_heads);
  const Tensor attended =
      exchanges.ring ? nn::ring_attention(tape, qkv, exchanges.ring) : attend(std::move(qkv));
  return ops::run_exchange(tape, attended, exchanges.to_tokens);
}

}  // namespace vfm::models
