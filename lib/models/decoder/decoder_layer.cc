// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_layer.h"

#include <utility>

#include "ops/matmul/exchanged_linear.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/swiglu.h"
#include "ops/position/qk_norm_rope.h"
#include "tensor/device.h"

namespace vfm::models {

using nn::Init;
using nn::Weight;
using ops::Tape;

namespace {

std::int64_t keys_width(const DecoderConfig& c) {
  return std::int64_t{c.key_value_heads()} * c.attention_head_dim;
}

}  // namespace

DecoderLayer::DecoderLayer(nn::WeightMaker& make, const std::string& name, const DecoderConfig& c,
                           const nn::NetworkLayout& ranks)
    : heads_(c.num_attention_heads / ranks.tp_size()),
      key_heads_(c.key_value_heads() / ranks.tp_size()),
      head_dim_(c.attention_head_dim),
      compute_(make.options.compute),
      has_text_(c.text_embed_dim > 0),
      norm1_(make.table(name + "input_layernorm.weight", {c.width()}, Init::one)),
      qkv_(make.stacked({{name + "self_attn.q_proj.weight", c.heads_width()},
                         {name + "self_attn.k_proj.weight", keys_width(c)},
                         {name + "self_attn.v_proj.weight", keys_width(c)}},
                        c.width(), ranks.cut(0))),
      norm_q_(make.table(name + "self_attn.q_norm.weight", {head_dim_}, Init::one)),
      norm_k_(make.table(name + "self_attn.k_norm.weight", {head_dim_}, Init::one)),
      out_(
          make.part({name + "self_attn.o_proj.weight"}, c.width(), c.heads_width(), ranks.cut(1))) {
  if (has_text_) {
    cross_norm_ = &make.table(name + "cross_attn_layernorm.weight", {c.width()}, Init::one);
    cross_q_ =
        &make.part({name + "cross_attn.q_proj.weight"}, c.heads_width(), c.width(), ranks.cut(0));
    cross_kv_ = &make.part({name + "cross_attn.k_proj.weight", name + "cross_attn.v_proj.weight"},
                           keys_width(c), c.text_embed_dim, ranks.cut(0));
    cross_norm_q_ = &make.table(name + "cross_attn.q_norm.weight", {head_dim_}, Init::one);
    cross_norm_k_ = &make.table(name + "cross_attn.k_norm.weight", {head_dim_}, Init::one);
    cross_out_ =
        &make.part({name + "cross_attn.o_proj.weight"}, c.width(), c.heads_width(), ranks.cut(1));
  }
  norm2_ = &make.table(name + "post_attention_layernorm.weight", {c.width()}, Init::one);
  up_ = &make.part({name + "mlp.gate_proj.weight", name + "mlp.up_proj.weight"}, c.hidden(),
                   c.width(), ranks.cut(0));
  down_ = &make.part({name + "mlp.down_proj.weight"}, c.width(), c.hidden(), ranks.cut(1));
}

Tensor DecoderLayer::forward(Tape& tape, Tensor x, const DecoderContext& context,
                             const LayerMemory* memory, std::int64_t at) const {
  const DType type = branch_type(context);
  if (context.positions.defined()) x = ops::add(tape, x, context.positions);
  const Tensor qkv = of_normed(tape, x, norm1_, qkv_, context);
  const Tensor attended = attend(tape, qkv, context, memory, at);
  const ops::Exchange& sum = context.exchanges.sum;
  x = add(tape, x, ops::summed_linear(tape, attended, out_.matrix(tape), sum, type));
  if (has_text_) {
    const Tensor kv = memory ? memory->text : text_keys(tape, context.text);
    const Tensor q = ops::qk_norm_rope(tape, of_normed(tape, x, *cross_norm_, *cross_q_, context),
                                       layout(heads_, 0, 0, cross_norm_q_->op(tape), Tensor()));
    const Tensor seen = ops::cross_attention(tape, q, kv, context.cross);
    x = add(tape, x, ops::summed_linear(tape, seen, cross_out_->matrix(tape), sum, type));
  }
  const Tensor hidden = of_normed(tape, x, *norm2_, *up_, context);
  const Tensor made =
      context.recompute
          ? ops::swiglu_linear(tape, hidden, down_->matrix(tape), type, sum)
          : ops::summed_linear(tape, ops::swiglu(tape, hidden), down_->matrix(tape), sum, type);
  return add(tape, x, made);
}

Tensor DecoderLayer::text_keys(Tape& tape, const Tensor& text) const {
  return ops::qk_norm_rope(tape, ops::linear(tape, text, cross_kv_->matrix(tape)),
                           layout(0, key_heads_, key_heads_, Tensor(), cross_norm_k_->op(tape)));
}

ops::QkNormRope DecoderLayer::layout(int queries, int keys, int values, Tensor query_weight,
                                     Tensor key_weight) const {
  ops::QkNormRope made;
  made.query_heads = queries;
  made.key_heads = keys;
  made.value_heads = values;
  made.head_dim = head_dim_;
  made.query_weight = std::move(query_weight);
  made.key_weight = std::move(key_weight);
  made.epsilon = kDecoderEpsilon;
  return made;
}

// W norm(x), of all rows that this rank's heads and columns need.
Tensor DecoderLayer::of_normed(Tape& tape, const Tensor& x, const Weight& norm, const Weight& w,
                               const DecoderContext& context) const {
  const ops::Exchange& gather = context.exchanges.gather;
  if (context.recompute)
    return ops::rmsnorm_linear(tape, x, norm.op(tape), kDecoderEpsilon, w.matrix(tape), gather);
  const Tensor normed = ops::rmsnorm(tape, x, norm.op(tape), kDecoderEpsilon);
  return ops::gathered_linear(tape, ops::cast(tape, normed, compute_), w.matrix(tape), gather);
}

// What is summed over ranks travels as the model computes; what is not, is added as it is.
DType DecoderLayer::branch_type(const DecoderContext& context) const {
  return context.exchanges.sum ? compute_ : DType::f32;
}

// x + branch, summed in f32.
Tensor DecoderLayer::add(Tape& tape, const Tensor& x, const Tensor& branch) {
  return ops::add(tape, x, ops::cast(tape, branch, DType::f32));
}

Tensor DecoderLayer::attend(Tape& tape, const Tensor& qkv, const DecoderContext& context,
                            const LayerMemory* memory, std::int64_t at) const {
  ops::QkNormRope rows = layout(heads_, key_heads_, key_heads_, norm_q_.op(tape), norm_k_.op(tape));
  rows.cosines = context.angles.cosines;
  rows.sines = context.angles.sines;
  if (memory) return recall(tape, ops::qk_norm_rope(tape, qkv, rows), context, memory->seen, at);
  if (!context.exchanges.any_of_cp())
    return ops::normed_self_attention(tape, qkv, rows, context.self);
  const auto attend_all = [&](const Tensor& all) {
    return ops::self_attention(tape, all, context.self);
  };
  return nn::shared_attention(tape, ops::qk_norm_rope(tape, qkv, rows), context.exchanges,
                              context.self, attend_all);
}

// One token's attention to itself and what was before it. In its row the queries stand before keys
// and values.
Tensor DecoderLayer::recall(Tape& tape, const Tensor& qkv, const DecoderContext& context,
                            const Tensor& seen, std::int64_t at) const {
  const Tensor by_head = qkv.reshape({heads_ + 2 * key_heads_, head_dim_});
  const Tensor q = by_head.rows(0, heads_).reshape({1, std::int64_t{heads_} * head_dim_});
  copy(by_head.rows(heads_, heads_ + 2 * key_heads_)
           .reshape({1, std::int64_t{2} * key_heads_ * head_dim_}),
       seen.rows(at, at + 1));
  ops::AttentionPack pack = context.self;
  pack.query_lengths = {1};
  pack.key_lengths = {at + 1};
  return ops::cross_attention(tape, q, seen.rows(0, at + 1), pack);
}

}  // namespace vfm::models
