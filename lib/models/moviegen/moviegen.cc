// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#include "models/moviegen/moviegen.h"

#include <deque>

#include "models/dit/framed_forward.h"
#include "nn/mlp.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

using nn::Stream;
using ops::Tape;

constexpr float kNormEpsilon = 1e-5f;
constexpr nn::AttentionNames kMovieGenNames{"to_q", "to_k", "to_v", "norm_q", "norm_k", "to_out"};

nn::AttentionShape moviegen_attention(const NetworkConfig& c) {
  nn::AttentionShape shape{.heads = c.heads(), .width = c.width(), .text_width = c.text_embed_dim};
  if (c.own<MovieGenFields>().qk_norm) shape.norm_epsilon = kNormEpsilon;
  return shape;
}

nn::AdaptiveNorm moviegen_norm(nn::WeightMaker& make, const std::string& name,
                               const NetworkConfig& c, int parts) {
  return {nn::Modulation(make, name + ".linear", c.width(), parts),
          make.options.compute,
          {.epsilon = kNormEpsilon, .centred = false}};
}

class Layer {
 public:
  Layer(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c)
      : norm1_(moviegen_norm(make, name + "norm1", c, 3)),
        self_(make, name + "attn1.", kMovieGenNames, moviegen_attention(c)),
        no_norm_{make.options.compute},
        cross_(make, name + "attn2.", kMovieGenNames, moviegen_attention(c)),
        norm2_(moviegen_norm(make, name + "norm2", c, 3)),
        mlp_(make, {name + "ff.gate_proj", name + "ff.up_proj"}, name + "ff.down_proj",
             {.width = c.width(), .hidden = c.hidden(), .activation = nn::Activation::swiglu}) {}

  Stream forward(Tape& tape, Stream x, const BlockContext& context) const {
    x.extra = context.positions;
    x.add(self_.forward(tape, norm1_.of(tape, x, context.conditions), context.self));
    x.add(cross_.forward(tape, no_norm_.of(x), context.text));
    x.add(mlp_.forward(tape, norm2_.of(tape, x, context.conditions), context));
    return x;
  }

 private:
  nn::AdaptiveNorm norm1_;
  nn::SelfAttention self_;
  nn::NoNorm no_norm_;
  nn::CrossAttention cross_;
  nn::AdaptiveNorm norm2_;
  nn::Mlp mlp_;
};

struct State : NetworkFrame {
  State(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable, ranks),
        time(make, "time_embed", c.width(), c.width()),
        rate(make, "fps_embed", c.width(), c.width()) {
    make_blocks(blocks);
    finish(moviegen_norm(make, "norm_out", c, 2));
  }

  using Block = Layer;
  using Context = BlockContext;
  BlockContext context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;

  nn::TimeEmbedding time, rate;
  std::deque<Layer> blocks;
};

BlockContext State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  BlockContext result = NetworkFrame::context(tape, pack, text);
  result.positions = positions(tape, pack, false);
  const auto embed = [&](const nn::TimeEmbedding& embedding, const Tensor& numbers) {
    return embedding.forward(tape, ops::sinusoid(numbers, config.width()));
  };
  const Tensor of_time = embed(time, pack.times);
  result.conditions.embedding = ops::silu(tape, ops::add(tape, of_time, embed(rate, pack.rates)));
  result.conditions.ones = ones(pack.times.elements());
  return result;
}

}  // namespace

std::unique_ptr<DiffusionNetwork> make_moviegen(const NetworkConfig& config, std::uint64_t seed,
                                                DType compute, Device device, bool trainable,
                                                const nn::NetworkLayout& layout) {
  return std::make_unique<NetworkOf<State>>(config, seed, compute, device, trainable, layout);
}

}  // namespace vfm::models
