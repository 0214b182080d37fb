// Shape letters: R noise levels of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#include "models/wan/wan.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/dit/framed_forward.h"
#include "models/dit/place_tables.h"
#include "nn/mlp.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/join.h"

namespace vfm::models {
namespace {

using nn::Stream;
using ops::Tape;

constexpr float kWanEpsilon = 1e-6f;
constexpr int kBlockParts = 6, kHeadParts = 2;
constexpr nn::AttentionNames kWanNames{"to_q", "to_k", "to_v", "norm_q", "norm_k", "to_out.0"};

// The blocks see embedded text, which is as wide as they are.
nn::AttentionShape wan_attention(const NetworkConfig& c) {
  return {.heads = c.heads(),
          .width = c.width(),
          .text_width = c.text_width(),
          .norm_epsilon = kWanEpsilon,
          .over_heads = true,
          .pairs = true,
          .bias = true,
          .out_bias = true};
}

nn::AdaptiveNorm wan_norm(const nn::WeightMaker& make,
                          std::optional<nn::Modulation> modulation = {}) {
  return {std::move(modulation), make.options.compute, {.epsilon = kWanEpsilon}};
}

class WanBlock {
 public:
  WanBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c)
      : table_(nn::Modulation::of_table(make, name + "scale_shift_table", c.width(), kBlockParts)),
        norm_(wan_norm(make)),
        self_(make, name + "attn1.", kWanNames, wan_attention(c)),
        norm2_(make, name + "norm2", c.width(), kWanEpsilon, true),
        cross_(make, name + "attn2.", kWanNames, wan_attention(c)),
        mlp_(make, {name + "ffn.net.0.proj"}, name + "ffn.net.2",
             {.width = c.width(),
              .hidden = c.hidden(),
              .activation = nn::Activation::tanh_gelu,
              .bias = true}) {}

  Stream forward(Tape& tape, Stream x, const BlockContext& context) const {
    const nn::Conditions& conditions = context.conditions;
    const Tensor modulation = table_.forward(tape, conditions);
    x.add(self_.forward(tape, norm_.of(x, modulation, 0, conditions), context.self));
    x.add(cross_.forward(tape, norm2_.of(tape, x), context.text));
    x.add(mlp_.forward(tape, norm_.of(x, modulation, 1, conditions), context));
    return x;
  }

 private:
  nn::Modulation table_;
  nn::AdaptiveNorm norm_;  // that before self-attention and that before the MLP
  nn::SelfAttention self_;
  nn::Norm norm2_;
  nn::CrossAttention cross_;
  nn::Mlp mlp_;
};

// Embeds the rows of the text encoder. It is no part of a block: it is not rounded to 8 bits.
class TextEmbedding {
 public:
  TextEmbedding(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c)
      : first_(make, make.matrix({name + ".linear_1.weight"}, c.width(), c.text_embed_dim,
                                 nn::Init::normal)),
        second_(make,
                make.matrix({name + ".linear_2.weight"}, c.width(), c.width(), nn::Init::normal)) {}
  Tensor forward(Tape& tape, const Tensor& text) const {
    return second_.forward(tape,
                           nn::activated(nn::Activation::tanh_gelu, first_.forward(tape, text)));
  }

 private:
  nn::Linear first_, second_;
};

struct WanState : NetworkFrame {
  WanState(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
           bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable, ranks, {.biases = true}),
        time(make, "condition_embedder.time_embedder", c.width(), c.width(),
             {.wave = c.own<WanFields>().freq_dim, .bias = true}),
        time_proj(make, make.conditioning("condition_embedder.time_proj.weight",
                                          kBlockParts * std::int64_t{c.width()}, c.width(),
                                          nn::Init::xavier)),
        embed_text(make, "condition_embedder.text_embedder", c) {
    make_blocks(blocks);
    finish(
        wan_norm(make, nn::Modulation::of_table(make, "scale_shift_table", c.width(), kHeadParts)));
  }

  using Block = WanBlock;
  using Context = BlockContext;
  BlockContext context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;

  nn::TimeEmbedding time;
  nn::Linear time_proj;
  TextEmbedding embed_text;
  std::deque<WanBlock> blocks;
  mutable PlaceTables<ops::RotaryAngles> angles;
};

BlockContext WanState::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  BlockContext result = NetworkFrame::context(tape, pack, text);
  result.text.text = embed_text.forward(tape, result.text.text);
  const DType type = pack.round_embedding ? compute : DType::f32;
  const auto rounded = [&](const Tensor& x) {
    return ops::cast(tape, ops::cast(tape, x, type), DType::f32);
  };
  const Tensor embedded =
      rounded(time.forward(tape, ops::sinusoid(pack.times, config.own<WanFields>().freq_dim)));
  result.conditions.shared = rounded(time_proj.forward(tape, rounded(ops::silu(tape, embedded))));
  result.conditions.ones = ones(pack.times.elements());
  result.last = result.conditions;
  result.last->shared = ops::join_columns(tape, {embedded, embedded});
  // Positions are whole numbers for any frame rate.
  std::vector<ops::TokenGrid> grids = pack.grids;
  for (ops::TokenGrid& grid : grids)
    grid.fps = 0;
  const auto all = angles.of(tape, grids, [this](const std::vector<ops::TokenGrid>& of) {
    return ops::rotary_angles(of, config.attention_head_dim, {1, 1, 1}, {.device = device});
  });
  result.self.angles = own_angles(*all, pack);
  return result;
}

}  // namespace

std::unique_ptr<DiffusionNetwork> make_wan(const NetworkConfig& config, std::uint64_t seed,
                                           DType compute, Device device, bool trainable,
                                           const nn::NetworkLayout& layout) {
  return std::make_unique<NetworkOf<WanState>>(config, seed, compute, device, trainable, layout);
}

}  // namespace vfm::models
