// The heads of an attention: norms of queries and keys, rotation, and self-attention over the
// tokens of all ranks. The network has the matrices before and after them.
// Shape letters: S tokens of this rank, L tokens of the text, H heads of queries, G heads of keys
// and values, K head dim. H and G are this rank's.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "nn/token_shard.h"
#include "nn/weight_maker.h"
#include "ops/position/positions.h"
#include "ops/position/qk_norm_rope.h"

namespace vfm::nn {

class Heads {
 public:
  /// Heads with RMS norms of queries and of keys, whose weights [K] are parameters of these names.
  Heads(WeightMaker& make, const HeadShape& of_rank, const std::string& query_norm,
        const std::string& key_norm, float epsilon);
  /// Heads without norms.
  explicit Heads(const HeadShape& of_rank) : shape_(of_rank) {}

  /// Returns the layout of rows of queries, keys and values, [S, (H + 2 G) K]. If the angles are
  /// undefined, rows are not rotated; heads without norms then have no layout for qk_norm_rope().
  ops::QkNormRope layout(ops::Tape& tape, const ops::RotaryAngles& angles = {}) const;
  /// Returns the self-attention, [S, H K], of the projected queries, keys and values, [S, (H + 2 G)
  /// K].
  Tensor attend(ops::Tape& tape, Tensor qkv, const ops::RotaryAngles& angles,
                const ops::AttentionPack& pack, const TokenExchanges& exchanges) const;
  /// Return the inputs of cross-attention, normed without rotation: queries [S, H K], and keys and
  /// values [L, 2 G K].
  Tensor queries(ops::Tape& tape, const Tensor& projected) const;
  Tensor keys(ops::Tape& tape, const Tensor& projected) const;

 private:
  HeadShape shape_;
  float epsilon_ = 0;
  const Weight *query_norm_ = nullptr, *key_norm_ = nullptr;
};

}  // namespace vfm::nn
