// SPDX-License-Identifier: Apache-2.0
#include "models/dit/dit_block.h"

#include "models/dit/dit.h"
#include "models/dit/shared_attention_fp8.h"
#include "ops/attention/attention_fp8.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/gelu.h"
#include "ops/position/qk_norm_rope.h"

namespace vfm::models {

using nn::Init;
using nn::Stream;
using nn::Weight;
using ops::Tape;

namespace {

constexpr float kQkNormEpsilon = 1e-5f;  // diffusers'; NVIDIA's own code has 1e-6

std::optional<SelfAttention> only_stdit(nn::WeightMaker& make, const std::string& name,
                                        const char* reach, const NetworkConfig& c,
                                        const nn::NetworkLayout& layout) {
  if (c.architecture != &kStdit) return std::nullopt;
  return std::optional<SelfAttention>(std::in_place, make, name + "norm_" + reach,
                                      name + "attn_" + reach, c, layout);
}

}  // namespace

AdaLn::AdaLn(nn::WeightMaker& make, const std::string& prefix, const NetworkConfig& c, int parts) {
  const int rank = c.own<DitFields>().adaln_lora_dim;
  if (rank > 0)
    down_ = &make.conditioning(prefix + ".linear_1.weight", rank, c.width(), Init::xavier);
  up_ = &make.conditioning(prefix + ".linear_2.weight", std::int64_t{parts} * c.width(),
                           rank > 0 ? rank : c.width(), Init::zero);
}

Tensor AdaLn::forward(Tape& tape, const DitContext& context) const {
  const Tensor low = down_ ? down_->multiply(tape, context.embedding) : context.embedding;
  return ops::add(tape, up_->multiply(tape, low), context.shared);
}

SelfAttention::SelfAttention(nn::WeightMaker& make, const std::string& norm_name,
                             const std::string& name, const NetworkConfig& c,
                             const nn::NetworkLayout& layout)
    : norm(make, norm_name, c, 3),
      qkv(make.part({name + ".to_q.weight", name + ".to_k.weight", name + ".to_v.weight"},
                    c.width(), c.width(), layout.cut(0))),
      heads(make, c.heads().share(layout.tp_size()), name + ".norm_q.weight",
            name + ".norm_k.weight", kQkNormEpsilon),
      out(make.part({name + ".to_out.0.weight"}, c.width(), c.width(), layout.cut(1))) {}

DitBlock::DitBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c,
                   const nn::NetworkLayout& layout)
    : compute_(make.options.compute),
      spatial_(only_stdit(make, name, "spatial", c, layout)),
      full_(make, name + "norm1", name + "attn1", c, layout),
      norm2_(make, name + "norm2", c, 3),
      cross_q_(make.part({name + "attn2.to_q.weight"}, c.width(), c.width(), layout.cut(0))),
      cross_kv_(make.part({name + "attn2.to_k.weight", name + "attn2.to_v.weight"}, c.width(),
                          c.text_embed_dim, layout.cut(0))),
      cross_heads_(make, c.heads().share(layout.tp_size()), name + "attn2.norm_q.weight",
                   name + "attn2.norm_k.weight", kQkNormEpsilon),
      cross_out_(make.part({name + "attn2.to_out.0.weight"}, c.width(), c.width(), layout.cut(1))),
      temporal_(only_stdit(make, name, "temporal", c, layout)),
      norm3_(make, name + "norm3", c, 3),
      up_(make.part({name + "ff.net.0.proj.weight"}, c.hidden(), c.width(), layout.cut(0))),
      down_(make.part({name + "ff.net.2.weight"}, c.width(), c.hidden(), layout.cut(1))) {}

Stream DitBlock::forward(Tape& tape, const Stream& in, const DitContext& context) const {
  Stream stream = in;
  Tensor positions = context.positions;
  if (spatial_) {
    stream = self_attention(tape, stream, context, *spatial_, Reach::frame, positions);
    positions = Tensor();  // they are added once
  }
  stream = self_attention(tape, stream, context, full_, Reach::sample, positions);
  const auto [x2, q, gates2] =
      enter(tape, stream, context, norm2_, Tensor(), cross_q_, context.exchanges.gather);
  stream = {x2, cross_attention(tape, q, context), gates2, 2 * x2.size(1)};
  if (temporal_) stream = self_attention(tape, stream, context, *temporal_, Reach::pixel, Tensor());
  const auto [x3, hidden, gates3] =
      enter(tape, stream, context, norm3_, Tensor(), up_, context.exchanges.gather);
  return {x3, activate(tape, hidden, context), gates3, 2 * x3.size(1)};
}

Tensor DitBlock::merge(Tape& tape, const Stream& in, const DitContext& context) const {
  return ops::gated_residual(tape, pending(in, context, Tensor()));
}

void DitBlock::keep_fp8(bool keep, dist::Group* ranks) const {
  for (const Weight* w : {&full_.qkv, &full_.out, &cross_q_, &cross_kv_, &cross_out_, &up_, &down_})
    w->keep_fp8(keep, ranks);
  for (const std::optional<SelfAttention>* layer : {&spatial_, &temporal_})
    if (*layer) {
      (*layer)->qkv.keep_fp8(keep, ranks);
      (*layer)->out.keep_fp8(keep, ranks);
    }
}

ops::ModulateInput DitBlock::pending(const Stream& in, const DitContext& context,
                                     const Tensor& modulation) const {
  ops::ModulateInput input = nn::pending(in, context.rows, modulation);
  input.epsilon = kDitNormEpsilon;
  input.out = compute_;
  return input;
}

// Adds what is pending, norms and modulates for the next sub-layer, and goes through its first
// matrix. `keep`: what goes into it is kept, whatever is recomputed.
DitBlock::Entered DitBlock::enter(Tape& tape, const Stream& in, const DitContext& context,
                                  const AdaLn& norm, const Tensor& extra, const Weight& matrix,
                                  const ops::Exchange& gather, bool keep) const {
  ops::ModulateInput input = pending(in, context, norm.forward(tape, context));
  input.extra = extra;
  if (context.recompute && !keep) {
    const ops::ModulatedLinear made =
        ops::modulate_linear(tape, input, matrix.matrix(tape), gather);
    return {made.stream, made.y, input.modulation};
  }
  if (matrix.in_fp8() && matrix.rounds_alone() && !gather) {
    const auto [stream, normed] = ops::gated_residual_layernorm_modulate_fp8(tape, input);
    return {stream, matrix.multiply(tape, normed, compute_), input.modulation};
  }
  const auto [stream, normed] = ops::gated_residual_layernorm_modulate(tape, input);
  if (matrix.in_fp8()) {  // rounded before it travels
    ops::Quantized low = matrix.quantize(normed);
    low.values = ops::run_exchange(tape, low.values, gather);
    return {stream, matrix.multiply(tape, low, compute_), input.modulation};
  }
  return {stream, matrix.multiply_gathered(tape, normed, gather), input.modulation};
}

// Along tp a rank has a summand of the result. In FP8 these travel in f32: rounded to bf16 each,
// by 2^-9, their sum would be another number than one rank's, and where one of 2^-9 away lies on
// the other side of a rounding to FP8, that is a step of 2^-3. What was multiplied is freed before.
// `way` may do more than sum them; whole results only move by it.
Tensor DitBlock::sum_of_ranks(Tape& tape, const Weight& matrix, Tensor x, const DitContext& context,
                              const ops::Exchange& way) const {
  if (!matrix.in_fp8() || !context.exchanges.sum) return matrix.multiply_summed(tape, x, way);
  const Tensor summand = matrix.multiply(tape, matrix.quantize(x), DType::f32);
  x = Tensor();
  return ops::cast(tape, ops::run_exchange(tape, summand, way), compute_);
}

Tensor DitBlock::activate(Tape& tape, const Tensor& hidden, const DitContext& context) const {
  const ops::Exchange& sum = context.exchanges.sum;
  if (context.recompute) return ops::gelu_linear(tape, hidden, down_.matrix(tape), sum);
  if (down_.in_fp8() && down_.rounds_alone())
    return ops::run_exchange(tape, down_.multiply(tape, ops::quantize_gelu(hidden), compute_), sum);
  return sum_of_ranks(tape, down_, ops::gelu(tape, hidden), context, sum);
}

Stream DitBlock::self_attention(Tape& tape, const Stream& in, const DitContext& context,
                                const SelfAttention& layer, Reach reach,
                                const Tensor& extra) const {
  // Rows of the width go to another order more cheaply than queries, keys and values do.
  // Not so in FP8, which is rounded in passing, unless they go to other ranks.
  const bool moved =
      reach == Reach::pixel && context.to_pixels && (context.from_pixels || !layer.qkv.in_fp8());
  const auto [x, projected, gates] =
      enter(tape, in, context, layer.norm, extra, layer.qkv,
            moved ? context.to_pixels : context.exchanges.gather, moved && context.keep_moved);
  const Tensor attended = attend(tape, projected, context, layer, reach, moved);
  const bool back = moved && context.from_pixels;
  const ops::Exchange& sum = back ? context.from_pixels : context.exchanges.sum;
  return {x, sum_of_ranks(tape, layer.out, attended, context, sum), gates, 2 * x.size(1)};
}

Tensor DitBlock::attend(Tape& tape, const Tensor& projected, const DitContext& context,
                        const SelfAttention& layer, Reach reach, bool moved) const {
  const SpaceTimePacks& packs = context.space_time;
  const ops::QkNormRope layout =
      layer.heads.layout(tape, moved ? packs.pixel_angles : context.angles);
  const ops::AttentionPack& pack = reach == Reach::sample  ? context.self
                                   : reach == Reach::frame ? packs.frames
                                                           : packs.pixels;
  // A frame or pixel of a hybrid, or a sample that is not cut along cp: all is here, in order.
  const bool alone = (context.from_pixels && reach != Reach::sample) ||
                     (reach != Reach::pixel && !context.exchanges.any_of_cp());
  if (alone && !context.fp8_attention)
    return ops::normed_self_attention(tape, projected, layout, pack);
  const auto attend_all = [&](Tensor qkv) {
    if (reach == Reach::pixel && !moved) qkv = ops::reorder_rows(tape, qkv, packs.pixel_order);
    const Tensor attended = context.fp8_attention ? ops::self_attention_fp8(tape, qkv, pack)
                                                  : ops::self_attention(tape, qkv, pack);
    return reach == Reach::pixel ? ops::restore_rows(tape, attended, packs.pixel_order) : attended;
  };
  const nn::TokenExchanges& exchanges = context.exchanges;
  const Tensor qkv = ops::qk_norm_rope(tape, projected, layout);
  if (alone) return ops::self_attention_fp8(tape, qkv, pack);
  // The scales of a sample are those of attention within it, and not within frames and pixels.
  if (context.fp8_attention && exchanges.any_of_cp() && reach == Reach::sample)
    return shared_attention_fp8(tape, qkv, exchanges, pack);
  return nn::shared_attention(tape, qkv, exchanges, pack, attend_all);
}

// Text has no positions, and all its tokens are seen.
Tensor DitBlock::cross_attention(Tape& tape, const Tensor& projected,
                                 const DitContext& context) const {
  const Tensor q = cross_heads_.queries(tape, projected);
  const Tensor kv = cross_heads_.keys(tape, cross_kv_.multiply(tape, context.text));
  return sum_of_ranks(tape, cross_out_, ops::cross_attention(tape, q, kv, context.cross), context,
                      context.exchanges.sum);
}

}  // namespace vfm::models
