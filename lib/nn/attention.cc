// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include <span>
#include <utility>

#include "nn/collectives.h"
#include "nn/low_heads.h"
#include "nn/shared_attention_fp8.h"
#include "ops/attention/attention.h"
#include "ops/attention/newest_query.h"
#include "ops/norm/heads_norm.h"
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
          {.divided = Divided::inputs, .bias = shape.out_bias, .out = shape.out}};
}

LinearOptions first_matrices(const AttentionShape& shape) {
  return {.divided = Divided::outputs, .bias = shape.bias};
}

}  // namespace

Heads::Heads(WeightMaker& make, const AttentionShape& shape, const std::string& prefix,
             const AttentionNames& names)
    : shape_(shape.heads.share(make.layout.tp_size())),
      over_heads_(shape.over_heads),
      pairs_(shape.pairs),
      ranks_(make.layout.tp_size()),
      fp8_ranks_(make.layout.fp8) {
  if (!shape.norm_epsilon) return;
  const auto norm = [&](const char* name, std::int64_t all_heads) {
    return over_heads_
               ? &make.table(prefix + name + ".weight", {all_heads}, Init::one, make.layout.cut(0))
               : &make.table(prefix + name + ".weight", {shape_.head_dim}, Init::one);
  };
  epsilon_ = *shape.norm_epsilon;
  query_norm_ = norm(names.query_norm, queries_width(shape));
  key_norm_ = norm(names.key_norm, keys_width(shape));
  if (over_heads_ && ranks_ > 1) over_ranks_ = sum_everywhere(*make.layout.tp);
}

Tensor Heads::normed_over_heads(Tape& tape, Tensor x, bool queries, bool keys) const {
  if (query_norm_ == nullptr || !over_heads_) return x;
  ops::HeadsNorm norm{{}, epsilon_, ranks_, over_ranks_};
  if (queries) norm.weights.push_back(query_norm_->op(tape));
  if (keys) norm.weights.push_back(key_norm_->op(tape));
  return ops::heads_norm(tape, x, norm);
}

ops::QkNormRope Heads::rows(Tape& tape, bool queries, bool keys) const {
  ops::QkNormRope made;
  made.head_dim = shape_.head_dim;
  made.epsilon = epsilon_;
  made.pairs = pairs_;
  if (queries) {
    made.query_heads = shape_.heads;
    if (by_head()) made.query_weight = query_norm_->op(tape);
  }
  if (keys) {
    made.key_heads = made.value_heads = shape_.key_heads;
    if (by_head()) made.key_weight = key_norm_->op(tape);
  }
  return made;
}

ops::QkNormRope Heads::rotated_rows(Tape& tape, const ops::RotaryAngles& angles) const {
  ops::QkNormRope made = rows(tape, true, true);
  made.cosines = angles.cosines;
  made.sines = angles.sines;
  return made;
}

Tensor Heads::attend_low(const Tensor& qkv, const ops::AttentionPack& pack) const {
  const LowHeads low = round_heads(qkv, pack, fp8_ranks_);
  return ops::self_attention_codes(low.codes, low.largest, pack);
}

Tensor Heads::attend(Tape& tape, Tensor qkv, const SelfTokens& t) const {
  const bool low = t.fp8 != Fp8Attention::none, shared = t.exchanges.any_of_cp();
  qkv = normed_over_heads(tape, std::move(qkv), true, true);
  if (by_head() || t.angles.cosines.defined()) {
    const ops::QkNormRope normed = rotated_rows(tape, t.angles);
    if (!shared && !low && !t.order) return ops::normed_self_attention(tape, qkv, normed, t.pack);
    qkv = ops::qk_norm_rope(tape, qkv, normed);
  }
  if (t.fp8 == Fp8Attention::shared && shared)
    return shared_attention_fp8(tape, qkv, t.exchanges, t.pack, fp8_ranks_);
  const auto attend_all = [&](Tensor all) {
    if (t.order && !t.ordered) all = ops::reorder_rows(tape, all, *t.order);
    const Tensor attended = low ? attend_low(all, t.pack) : ops::self_attention(tape, all, t.pack);
    return t.order ? ops::restore_rows(tape, attended, *t.order) : attended;
  };
  return shared_attention(tape, std::move(qkv), t.exchanges, t.pack, attend_all);
}

// In the token's row the queries stand before keys and values.
Tensor Heads::attend(Tape& tape, const Tensor& qkv, const SelfTokens& tokens,
                     const KeyCache& cache) const {
  const std::int64_t heads = shape_.heads, keys = std::int64_t{2} * shape_.key_heads,
                     dim = shape_.head_dim;
  Tensor row = normed_over_heads(tape, qkv, true, true);
  if (by_head() || tokens.angles.cosines.defined())
    row = ops::qk_norm_rope(tape, row, rotated_rows(tape, tokens.angles));
  row = row.reshape({heads + keys, dim});
  const Tensor q = row.rows(0, heads).reshape({1, heads * dim});
  copy(row.rows(heads, heads + keys).reshape({1, keys * dim}),
       cache.rows.rows(cache.at, cache.at + 1));
  return newest(q, cache.rows, cache.at + 1);
}

Tensor Heads::newest(const Tensor& queries, const Tensor& rows, std::int64_t seen) const {
  const ops::SeenKeys keys{rows, seen};
  return ops::newest_query(queries.to(DType::f32), std::span(&keys, 1), shape_.heads,
                           shape_.key_heads)
      .to(queries.dtype());
}

Tensor Heads::queries(Tape& tape, const Tensor& projected) const {
  if (!by_head()) return normed_over_heads(tape, projected, true, false);
  return ops::qk_norm_rope(tape, projected, rows(tape, true, false));
}

Tensor Heads::keys(Tape& tape, const Tensor& projected) const {
  if (!by_head()) return normed_over_heads(tape, projected, false, true);
  return ops::qk_norm_rope(tape, projected, rows(tape, false, true));
}

SelfAttention::SelfAttention(WeightMaker& make, const std::string& prefix,
                             const AttentionNames& names, const AttentionShape& shape)
    : project_(make,
               {{prefix + names.query, queries_width(shape)},
                {prefix + names.key, keys_width(shape)},
                {prefix + names.value, keys_width(shape)}},
               shape.width, first_matrices(shape)),
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
             first_matrices(shape)),
      key_value_(
          make,
          {{prefix + names.key, keys_width(shape)}, {prefix + names.value, keys_width(shape)}},
          shape.text_width, first_matrices(shape)),
      heads_(make, shape, prefix, names),
      out_(last_matrix(make, prefix + names.out, shape)) {}

Tensor CrossAttention::forward(Tape& tape, const Operand& x, const TextTokens& tokens,
                               const Tensor& kept) const {
  const Tensor q = heads_.queries(tape, query_.forward(tape, x, tokens));
  const Tensor kv = kept.defined() ? kept : keys(tape, tokens.text);
  return out_.forward(tape,
                      tokens.newest ? heads_.newest(q, kv, kv.size(0))
                                    : ops::cross_attention(tape, q, kv, tokens.pack),
                      tokens);
}

Tensor CrossAttention::keys(Tape& tape, const Tensor& text, const Pass& pass) const {
  return heads_.keys(tape, key_value_.forward(tape, text, pass));
}

}  // namespace vfm::nn
