// Attention of a transformer's block: the first matrices, norms of queries and keys, rotation,
// attention over the tokens of all ranks, and the last matrix. Norms are RMS norms of each head, or
// of all heads of a token together as in Wan's transformer. Ranks of tp divide the heads among
// them, and exchange the sum of squares of a norm over all heads. Ranks of cp share the tokens of
// self-attention, by any kind (nn/cp_kind.h).
// Shape letters: S tokens of this rank, L tokens of the text, H heads of queries, G heads of keys
// and values, K head dim, D width, E text width. H and G are this rank's; H / G heads of queries
// share one of keys.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/linear.h"
#include "ops/position/positions.h"
#include "ops/position/qk_norm_rope.h"

namespace vfm::nn {

/// Which self-attention runs in FP8, for inference. `shared`: ranks of cp send each other rounded
/// heads (nn/shared_attention_fp8.h); `alone`: each rank rounds what it has when it attends. The
/// scales are those of all ranks of NetworkLayout::fp8.
enum class Fp8Attention { none, alone, shared };

/// The tokens that each token sees in self-attention, and how they come together.
struct SelfTokens : Pass {
  ops::AttentionPack pack;   ///< for this rank's heads and queries
  ops::RotaryAngles angles;  ///< [S, K / 2]; undefined: nothing is rotated
  Fp8Attention fp8 = Fp8Attention::none;
  /// The order in which the tokens of a sequence stand together, if it is not that of the rows.
  /// Rows get this order before attention, unless they have it already, and lose it after.
  std::optional<ops::RowOrder> order = {};
  bool ordered = false;  ///< rows have that order already
};

/// The text that tokens see in cross-attention.
struct TextTokens : Pass {
  Tensor text;  ///< [L, E]; all ranks have it
  ops::AttentionPack pack;
};

/// The keys and values of a sequence of which one token comes at a time: [tokens, 2 G K].
struct KeyCache {
  Tensor rows;
  std::int64_t at = 0;  ///< row of the token that comes now
};

/// The heads and widths of an attention, of all ranks together.
struct AttentionShape {
  HeadShape heads;
  std::int64_t width = 0, text_width = 0;
  std::optional<float> norm_epsilon = {};  ///< of the norms; none: there are no norms
  std::optional<DType> out = {};           ///< LinearOptions::out of the result
  /// A norm is over all heads of a token, with weights [H K] or [G K]; else by head, with [K].
  bool over_heads = false;
  bool pairs = false;     ///< rotates neighbours, not halves (ops/position/qk_norm_rope.h)
  bool bias = false;      ///< of queries, keys and values
  bool out_bias = false;  ///< of the result
};

/// How a network's matrices and norms are called, after a prefix and before ".weight".
struct AttentionNames {
  const char *query, *key, *value, *query_norm, *key_norm, *out;
};

/// Norms and rotation of heads, and self-attention of projected queries, keys and values.
class Heads {
 public:
  Heads(WeightMaker& make, const AttentionShape& shape, const std::string& prefix,
        const AttentionNames& names);

  /// Returns the self-attention, [S, H K], of queries, keys and values, [S, (H + 2 G) K]. With a
  /// cache there is one token, which sees itself and the rows before.
  Tensor attend(ops::Tape& tape, Tensor qkv, const SelfTokens& tokens) const;
  Tensor attend(ops::Tape& tape, const Tensor& qkv, const SelfTokens& tokens,
                const KeyCache& cache) const;
  /// Return the inputs of cross-attention, normed without rotation: queries [S, H K], and keys and
  /// values [L, 2 G K].
  Tensor queries(ops::Tape& tape, const Tensor& projected) const;
  Tensor keys(ops::Tape& tape, const Tensor& projected) const;
  /// Returns the attention of one token, [1, H K], over the first `seen` rows of keys and values.
  /// Its bits do not depend on how many heads this rank has (ops/attention/newest_query.h).
  Tensor newest(const Tensor& queries, const Tensor& rows, std::int64_t seen) const;

 private:
  bool by_head() const { return query_norm_ != nullptr && !over_heads_; }
  ops::QkNormRope rows(ops::Tape& tape, bool queries, bool keys) const;
  ops::QkNormRope rotated_rows(ops::Tape& tape, const ops::RotaryAngles& angles) const;
  Tensor normed_over_heads(ops::Tape& tape, Tensor x, bool queries, bool keys) const;
  Tensor attend_low(const Tensor& qkv, const ops::AttentionPack& pack) const;

  HeadShape shape_;  // of this rank
  float epsilon_ = 0;
  bool over_heads_ = false, pairs_ = false;
  int ranks_ = 1;             // that share the heads
  ops::Exchange over_ranks_;  // adds up what they have
  dist::Group* fp8_ranks_ = nullptr;
  const Weight *query_norm_ = nullptr, *key_norm_ = nullptr;
};

class SelfAttention {
 public:
  SelfAttention(WeightMaker& make, const std::string& prefix, const AttentionNames& names,
                const AttentionShape& shape);
  /// Returns [S, D]. For `cache` see Heads::attend().
  Tensor forward(ops::Tape& tape, const Operand& x, const SelfTokens& tokens,
                 const KeyCache* cache = nullptr) const;

 private:
  Linear project_;
  Heads heads_;
  Linear out_;
};

class CrossAttention {
 public:
  CrossAttention(WeightMaker& make, const std::string& prefix, const AttentionNames& names,
                 const AttentionShape& shape);
  /// Returns [S, D]. `kept`: the keys and values that keys() made of the text before;
  /// undefined: they are made now.
  Tensor forward(ops::Tape& tape, const Operand& x, const TextTokens& tokens,
                 const Tensor& kept = {}) const;
  /// Returns the keys and values of the text, [L, 2 G K].
  Tensor keys(ops::Tape& tape, const Tensor& text, const Pass& pass = {}) const;

 private:
  Linear query_, key_value_;
  Heads heads_;
  Linear out_;
};

}  // namespace vfm::nn
