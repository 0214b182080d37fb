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
    : shape_(c.heads().share(ranks.tp_size())),
      compute_(make.options.compute),
      norm1_(make.table(name + "input_layernorm.weight", {c.width()}, Init::one)),
      qkv_(make.stacked({{name + "self_attn.q_proj.weight", c.heads_width()},
                         {name + "self_attn.k_proj.weight", keys_width(c)},
                         {name + "self_attn.v_proj.weight", keys_width(c)}},
                        c.width(), ranks.cut(0))),
      heads_(make, shape_, name + "self_attn.q_norm.weight", name + "self_attn.k_norm.weight",
             kDecoderEpsilon),
      out_(
          make.part({name + "self_attn.o_proj.weight"}, c.width(), c.heads_width(), ranks.cut(1))) {
  if (c.text_embed_dim > 0) {
    cross_norm_ = &make.table(name + "cross_attn_layernorm.weight", {c.width()}, Init::one);
    cross_q_ =
        &make.part({name + "cross_attn.q_proj.weight"}, c.heads_width(), c.width(), ranks.cut(0));
    cross_kv_ = &make.part({name + "cross_attn.k_proj.weight", name + "cross_attn.v_proj.weight"},
                           keys_width(c), c.text_embed_dim, ranks.cut(0));
    cross_heads_.emplace(make, shape_, name + "cross_attn.q_norm.weight",
                         name + "cross_attn.k_norm.weight", kDecoderEpsilon);
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
  if (cross_heads_) {
    const Tensor kv = memory ? memory->text : text_keys(tape, context.text);
    const Tensor q =
        cross_heads_->queries(tape, of_normed(tape, x, *cross_norm_, *cross_q_, context));
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
  return cross_heads_->keys(tape, ops::linear(tape, text, cross_kv_->matrix(tape)));
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
  if (!memory) return heads_.attend(tape, qkv, context.angles, context.self, context.exchanges);
  return recall(tape, ops::qk_norm_rope(tape, qkv, heads_.layout(tape, context.angles)), context,
                memory->seen, at);
}

// One token's attention to itself and what was before it. In its row the queries stand before keys
// and values.
Tensor DecoderLayer::recall(Tape& tape, const Tensor& qkv, const DecoderContext& context,
                            const Tensor& seen, std::int64_t at) const {
  const Tensor by_head = qkv.reshape({shape_.heads + 2 * shape_.key_heads, shape_.head_dim});
  const Tensor q =
      by_head.rows(0, shape_.heads).reshape({1, std::int64_t{shape_.heads} * shape_.head_dim});
  copy(by_head.rows(shape_.heads, shape_.heads + 2 * shape_.key_heads)
           .reshape({1, std::int64_t{2} * shape_.key_heads * shape_.head_dim}),
       seen.rows(at, at + 1));
  ops::AttentionPack pack = context.self;
  pack.query_lengths = {1};
  pack.key_lengths = {at + 1};
  return ops::cross_attention(tape, q, seen.rows(0, at + 1), pack);
}

}  // namespace vfm::models
