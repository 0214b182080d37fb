// SPDX-License-Identifier: Apache-2.0
#include "nn/heads.h"

#include <utility>

namespace vfm::nn {

Heads::Heads(WeightMaker& make, const HeadShape& of_rank, const std::string& query_norm,
             const std::string& key_norm, float epsilon)
    : shape_(of_rank),
      epsilon_(epsilon),
      query_norm_(&make.table(query_norm, {of_rank.head_dim}, Init::one)),
      key_norm_(&make.table(key_norm, {of_rank.head_dim}, Init::one)) {}

ops::QkNormRope Heads::layout(ops::Tape& tape, const ops::RotaryAngles& angles) const {
  ops::QkNormRope rows;
  rows.query_heads = shape_.heads;
  rows.key_heads = rows.value_heads = shape_.key_heads;
  rows.head_dim = shape_.head_dim;
  if (query_norm_ != nullptr) rows.query_weight = query_norm_->op(tape);
  if (key_norm_ != nullptr) rows.key_weight = key_norm_->op(tape);
  rows.cosines = angles.cosines;
  rows.sines = angles.sines;
  rows.epsilon = epsilon_;
  return rows;
}

Tensor Heads::attend(ops::Tape& tape, Tensor qkv, const ops::RotaryAngles& angles,
                     const ops::AttentionPack& pack, const TokenExchanges& exchanges) const {
  if (query_norm_ != nullptr || angles.cosines.defined()) {
    const ops::QkNormRope rows = layout(tape, angles);
    if (!exchanges.any_of_cp()) return ops::normed_self_attention(tape, qkv, rows, pack);
    qkv = ops::qk_norm_rope(tape, qkv, rows);
  }
  const auto attend_all = [&](const Tensor& all) { return ops::self_attention(tape, all, pack); };
  return shared_attention(tape, std::move(qkv), exchanges, pack, attend_all);
}

Tensor Heads::queries(ops::Tape& tape, const Tensor& projected) const {
  if (query_norm_ == nullptr) return projected;
  ops::QkNormRope rows;
  rows.query_heads = shape_.heads;
  rows.head_dim = shape_.head_dim;
  rows.query_weight = query_norm_->op(tape);
  rows.epsilon = epsilon_;
  return ops::qk_norm_rope(tape, projected, rows);
}

Tensor Heads::keys(ops::Tape& tape, const Tensor& projected) const {
  if (key_norm_ == nullptr) return projected;
  ops::QkNormRope rows;
  rows.key_heads = rows.value_heads = shape_.key_heads;
  rows.head_dim = shape_.head_dim;
  rows.key_weight = key_norm_->op(tape);
  rows.epsilon = epsilon_;
  return ops::qk_norm_rope(tape, projected, rows);
}

}  // namespace vfm::nn
