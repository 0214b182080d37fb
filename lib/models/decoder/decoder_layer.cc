// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_layer.h"

namespace vfm::models {

using nn::Stream;
using ops::Tape;

namespace {

constexpr nn::AttentionNames kDecoderNames{"q_proj", "k_proj", "v_proj",
                                           "q_norm", "k_norm", "o_proj"};

nn::AttentionShape decoder_attention(const DecoderConfig& c) {
  return {.heads = c.heads(),
          .width = c.width(),
          .text_width = c.text_embed_dim,
          .norm_epsilon = kDecoderEpsilon,
          .out = DType::f32};
}

nn::Norm decoder_norm(nn::WeightMaker& make, const std::string& name, const DecoderConfig& c) {
  return {make, name + "_layernorm", c.width(), kDecoderEpsilon};
}

}  // namespace

std::optional<DecoderLayer::NormedCrossAttention> DecoderLayer::only_with_text(
    nn::WeightMaker& make, const std::string& name, const DecoderConfig& c) {
  if (c.text_embed_dim == 0) return std::nullopt;
  return NormedCrossAttention{decoder_norm(make, name + "cross_attn", c),
                              {make, name + "cross_attn.", kDecoderNames, decoder_attention(c)}};
}

DecoderLayer::DecoderLayer(nn::WeightMaker& make, const std::string& name, const DecoderConfig& c)
    : norm1_(decoder_norm(make, name + "input", c)),
      self_(make, name + "self_attn.", kDecoderNames, decoder_attention(c)),
      cross_(only_with_text(make, name, c)),
      norm2_(decoder_norm(make, name + "post_attention", c)),
      mlp_(make, {name + "mlp.gate_proj", name + "mlp.up_proj"}, name + "mlp.down_proj",
           {.width = c.width(),
            .hidden = c.hidden(),
            .activation = nn::Activation::swiglu,
            .out = DType::f32}) {}

Stream DecoderLayer::forward(Tape& tape, Stream x, const DecoderContext& context,
                             const LayerMemory* memory) const {
  x.extra = context.positions;
  x.add(self_.forward(tape, norm1_.of(tape, x), context.self, memory ? &memory->seen : nullptr));
  if (cross_)
    x.add(cross_->attention.forward(tape, cross_->norm.of(tape, x), context.text,
                                    memory ? memory->text : Tensor()));
  x.add(mlp_.forward(tape, norm2_.of(tape, x), context));
  x.settle(tape);
  return x;
}

}  // namespace vfm::models
