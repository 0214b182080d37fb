// The ranks that share the forward and backward of one network.
//
// Tensor parallelism (tp): a rank has some heads of each attention and some of the MLP's hidden
// columns. Between sub-layers, where nothing depends on neighbours, it has some of the tokens
// (sequence parallelism). Tokens are gathered before a matrix, and results are summed after it.
// Context parallelism (cp): a rank has a part of each sample's tokens. For attention it exchanges
// with the others in one of four ways (nn/cp_kind.h). In a hybrid (models/dit/stdit_shard.h) only
// full attention does so. Between sub-layers a token, and its part of the loss, belongs to one rank
// of tp and cp.
// Pipeline parallelism (pp): a rank has some of the blocks. The first rank has the embedding too,
// and the last one the head. Each rank embeds the noise levels and positions for its own blocks.
// Source: Korthikanti et al., "Reducing activation recomputation in large transformer models"
// (2022).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "nn/block_shards.h"
#include "nn/cp_kind.h"
#include "nn/placement.h"
#include "ops/matmul/quantize.h"

namespace vfm::dist {
class Group;
}

namespace vfm::nn {

/// The blocks [begin, end).
struct BlockRange {
  std::size_t begin = 0, end = 0;
};

/// An axis whose group is null has one rank. The groups must outlive the network.
struct NetworkLayout {
  dist::Group *tp = nullptr, *cp = nullptr;
  CpKind cp_kind = CpKind::gather;
  /// Parts of cp, at least two, end at frames, and cp_kind is for full attention alone.
  bool hybrid = false;
  /// The two axes of cp for CpKind::all_to_all_ring, else null: neighbours that exchange tokens for
  /// heads, and the ranks that have the same place among such neighbours.
  dist::Group *cp_heads = nullptr, *cp_ring = nullptr;
  StateShares state = {};         ///< the part of the optimizer's state that this rank keeps
  BlockShards* blocks = nullptr;  ///< gathers the blocks' matrices; null: all are in memory
  std::optional<ops::RowFormat> quantized = {};  ///< format that quantize() rounds matrices to
  int tp_chunks = 1;           ///< chunks of rows that travel along tp (nn/chunked_rows.h)
  dist::Group* fp8 = nullptr;  ///< ranks that round to FP8 with one scale; null: this rank alone
  bool by_sample = false;      ///< if samples are few, exchanges heads sample by sample
  /// Ranks of tp divide the outputs of every matrix, and gather each result (nn/linear.h). So every
  /// sum is that of one rank, to the bit. For one token at a time (Pass::newest).
  bool by_outputs = false;
  dist::Group* pp = nullptr;
  /// Number of blocks in each chunk of a pipeline. Rank r has the chunks r, pp + r, ...
  std::vector<int> stages = {};

  int tp_rank() const;
  int tp_size() const;
  int cp_rank() const;
  int cp_size() const;
  int pp_rank() const;
  int pp_size() const;
  bool first_stage() const { return pp_rank() == 0; }
  bool last_stage() const { return pp_rank() + 1 == pp_size(); }
  /// Returns this rank's blocks in a network of `count` blocks, chunk by chunk. Without a pipeline
  /// returns all blocks.
  std::vector<BlockRange> chunks(int count) const;
  bool has_block(int i, int count) const;  ///< whether this rank has block `i` of `count`
  /// True if this is the first of the ranks that share tokens and heads.
  bool first() const { return tp_rank() == 0 && cp_rank() == 0; }
  /// True if this rank shares no tokens or heads with other ranks.
  bool alone() const { return tp_size() * cp_size() == 1; }
  /// True if a rank computes attention for all tokens of the pack, with fewer heads.
  bool deals_heads() const { return cp_size() > 1 && cp_kind == CpKind::all_to_all; }
  /// Returns the ranks that exchange tokens for heads with this rank; null if there are none.
  dist::Group* heads_group() const;
  /// Returns the ranks among which keys go round; null if there are none.
  dist::Group* ring_group() const;
  int heads_ranks() const;  ///< ranks that share out the heads of self-attention
  /// Returns this rank's part of a matrix along `dim`.
  Cut cut(int dim) const { return {dim, tp_rank(), tp_size()}; }
  /// Throws Error{usage}, which names the nearest possible layout, if a network of `blocks` blocks
  /// with these heads cannot have this layout.
  void check(int blocks, const HeadShape& shape) const;
  /// The same check for the heads alone.
  void check_heads(const HeadShape& shape) const;
};

}  // namespace vfm::nn
