// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include <utility>

#include "nn/shared_attention_fp8.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_fp8.h"
#include "tensor/device.h"

namespace vfm::nn {

using ops::Tape;

namespace {

std::int64_t queries_width(const AttentionShape& shape) {
  return std::int64_t{shape.heads.heads} * shape.heads.head_dim;
}
std::int64_t keys_width(const AttentionShape& shape) {
  return std::int64_t{shape.heads.key_heads} * shape.heads.head_dim;
}

Linear last_matrix(WeightMaker& make, const std::string& name, const AttentionShape& shape) {
  return {make,
          {{name, shape.width}},
          queries_width(shape),
          {.divided = Divided::inputs, .out = shape.out}};
}

}  // namespace

Heads::Heads(WeightMaker& make, const AttentionShape& shape, const std::string& prefix,
             const AttentionNames& names)
    : shape_(shape.heads.share(make.layout.tp_size())) {
  if (!shape.norm_epsilon) return;
  const auto norm = [&](const char* name) {
    return &make.table(prefix + name + ".weight", {shape_.head_dim}, Init::one);
  };
  epsilon_ = *shape.norm_epsilon;
  query_norm_ = norm(names.query_norm);
  key_norm_ = norm(names.key_norm);
}

ops::QkNormRope Heads::rows(Tape& tape, bool queries, bool keys) const {
  ops::QkNormRope made;
  made.head_dim = shape_.head_dim;
  made.epsilon = epsilon_;
  if (queries) {
    made.query_heads = shape_.heads;
    if (query_norm_ != nullptr) made.query_weight = query_norm_->op(tape);
  }
  if (keys) {
    made.key_heads = made.value_heads = shape_.key_heads;
    if (key_norm_ != nullptr) made.key_weight = key_norm_->op(tape);
  }
  return made;
}

ops::QkNormRope Heads::rotated_rows(Tape& tape, const ops::RotaryAngles& angles) const {
  ops::QkNormRope made = rows(tape, true, true);
  made.cosines = angles.cosines;
  made.sines = angles.sines;
  return made;
}

Tensor Heads::attend(Tape& tape, Tensor qkv, const SelfTokens& t) const {
  const bool low = t.fp8 != Fp8Attention::none, shared = t.exchanges.any_of_cp();
  if (query_norm_ != nullptr || t.angles.cosines.defined()) {
    const ops::QkNormRope normed = rotated_rows(tape, t.angles);
    if (!shared && !low && !t.order) return ops::normed_self_attention(tape, qkv, normed, t.pack);
    qkv = ops::qk_norm_rope(tape, qkv, normed);
  }
  if (t.fp8 == Fp8Attention::shared && shared)
    return shared_attention_fp8(tape, qkv, t.exchanges, t.pack);
  const auto attend_all = [&](Tensor all) {
    if (t.order && !t.ordered) all = ops::reorder_rows(tape, all, *t.order);
    const Tensor attended =
        low ? ops::self_attention_fp8(tape, all, t.pack) : ops::self_attention(tape, all, t.pack);
    return t.order ? ops::restore_rows(tape, attended, *t.order) : attended;
  };
  return shared_attention(tape, std::move(qkv), t.exchanges, t.pack, attend_all);
}

// In the token's row the queries stand before keys and values.
Tensor Heads::attend(Tape& tape, const Tensor& qkv, const SelfTokens& tokens,
                     const KeyCache& cache) const {
  const std::int64_t heads = shape_.heads, keys = std::int64_t{2} * shape_.key_heads,
                     dim = shape_.head_dim;
  const Tensor by_head =
      ops::qk_norm_rope(tape, qkv, rotated_rows(tape, tokens.angles)).reshape({heads + keys, dim});
  const Tensor q = by_head.rows(0, heads).reshape({1, heads * dim});
  copy(by_head.rows(heads, heads + keys).reshape({1, keys * dim}),
       cache.rows.rows(cache.at, cache.at + 1));
  ops::AttentionPack pack = tokens.pack;
  pack.query_lengths = {1};
  pack.key_lengths = {cache.at + 1};
  return ops::cross_attention(tape, q, cache.rows.rows(0, cache.at + 1), pack);
}

Tensor Heads::queries(Tape& tape, const Tensor& projected) const {
  if (query_norm_ == nullptr) return projected;
  return ops::qk_norm_rope(tape, projected, rows(tape, true, false));
}

Tensor Heads::keys(Tape& tape, const Tensor& projected) const {
  if (key_norm_ == nullptr) return projected;
  return ops::qk_norm_rope(tape, projected, rows(tape, false, true));
}

SelfAttention::SelfAttention(WeightMaker& make, const std::string& prefix,
                             const AttentionNames& names, const AttentionShape& shape)
    : project_(make,
               {{prefix + names.query, queries_width(shape)},
                {prefix + names.key, keys_width(shape)},
                {prefix + names.value, keys_width(shape)}},
               shape.width, {.divided = Divided::outputs}),
      heads_(make, shape, prefix, names),
      out_(last_matrix(make, prefix + names.out, shape)) {}

Tensor SelfAttention::forward(Tape& tape, const Operand& x, const SelfTokens& tokens,
                              const KeyCache* cache) const {
  const Tensor qkv = project_.forward(tape, x, tokens);
  return out_.forward(
      tape, cache ? heads_.attend(tape, qkv, tokens, *cache) : heads_.attend(tape, qkv, tokens),
      tokens);
}

CrossAttention::CrossAttention(WeightMaker& make, const std::string& prefix,
                               const AttentionNames& names, const AttentionShape& shape)
    : query_(make, {{prefix + names.query, queries_width(shape)}}, shape.width,
             {.divided = Divided::outputs}),
      key_value_(
          make,
          {{prefix + names.key, keys_width(shape)}, {prefix + names.value, keys_width(shape)}},
          shape.text_width, {.divided = Divided::outputs}),
      heads_(make, shape, prefix, names),
      out_(last_matrix(make, prefix + names.out, shape)) {}

Tensor CrossAttention::forward(Tape& tape, const Operand& x, const TextTokens& tokens,
                               const Tensor& kept) const {
  const Tensor q = heads_.queries(tape, query_.forward(tape, x, tokens));
  const Tensor kv = kept.defined() ? kept : keys(tape, tokens.text);
  return out_.forward(tape, ops::cross_attention(tape, q, kv, tokens.pack), tokens);
}

Tensor CrossAttention::keys(Tape& tape, const Tensor& text) const {
  return heads_.keys(tape, key_value_.forward(tape, text));
}

}  // namespace vfm::nn
