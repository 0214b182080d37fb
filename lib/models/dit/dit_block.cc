// SPDX-License-Identifier: Apache-2.0
#include "models/dit/dit_block.h"

#include "models/dit/dit.h"

namespace vfm::models {

using nn::Stream;
using ops::Tape;

namespace {

constexpr nn::AttentionNames kDitNames{"to_q", "to_k", "to_v", "norm_q", "norm_k", "to_out.0"};

nn::AttentionShape dit_attention(const NetworkConfig& c) {
  return {.heads = c.heads(),
          .width = c.width(),
          .text_width = c.text_embed_dim,
          .norm_epsilon = 1e-5f};  // diffusers'; NVIDIA's own code has 1e-6
}

}  // namespace

nn::AdaptiveNorm dit_norm(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c,
                          int parts) {
  const int rank = c.own<DitFields>().adaln_lora_dim;
  const std::string down = name + ".linear_1", up = name + ".linear_2";
  const nn::Modulation modulation = rank > 0
                                        ? nn::Modulation(make, down, up, c.width(), parts, rank)
                                        : nn::Modulation(make, up, c.width(), parts);
  return {modulation, make.options.compute, {.epsilon = kDitNormEpsilon}};
}

DitBlock::NormedAttention DitBlock::normed_attention(nn::WeightMaker& make, const std::string& norm,
                                                     const std::string& name,
                                                     const NetworkConfig& c) {
  return {dit_norm(make, norm, c), {make, name + ".", kDitNames, dit_attention(c)}};
}

std::optional<DitBlock::NormedAttention> DitBlock::only_stdit(nn::WeightMaker& make,
                                                              const std::string& name,
                                                              const char* reach,
                                                              const NetworkConfig& c) {
  if (c.architecture != &kStdit) return std::nullopt;
  return normed_attention(make, name + "norm_" + reach, name + "attn_" + reach, c);
}

DitBlock::DitBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c)
    : spatial_(only_stdit(make, name, "spatial", c)),
      full_(normed_attention(make, name + "norm1", name + "attn1", c)),
      norm2_(dit_norm(make, name + "norm2", c)),
      cross_(make, name + "attn2.", kDitNames, dit_attention(c)),
      temporal_(only_stdit(make, name, "temporal", c)),
      norm3_(dit_norm(make, name + "norm3", c)),
      mlp_(make, {name + "ff.net.0.proj"}, name + "ff.net.2",
           {.width = c.width(), .hidden = c.hidden(), .activation = nn::Activation::gelu}) {}

Stream DitBlock::forward(Tape& tape, Stream x, const DitContext& context) const {
  const auto attend = [&](const NormedAttention& layer, const nn::SelfTokens& tokens) {
    x.add(layer.attention.forward(tape, layer.norm.of(tape, x, context.conditions), tokens));
  };
  x.extra = context.positions;
  if (spatial_) attend(*spatial_, context.frames);
  attend(full_, context.self);
  x.add(cross_.forward(tape, norm2_.of(tape, x, context.conditions), context.text));
  if (temporal_) attend(*temporal_, context.pixels);
  x.add(mlp_.forward(tape, norm3_.of(tape, x, context.conditions), context));
  return x;
}

}  // namespace vfm::models
