// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#include "models/moviegen/moviegen.h"

#include <deque>
#include <optional>

#include "models/dit/fp8.h"
#include "models/dit/framed_network.h"
#include "models/dit/network_frame.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/stack.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/silu.h"

namespace vfm::models {
namespace {

using nn::Stream;
using ops::Tape;

constexpr float kNormEpsilon = 1e-5f;
constexpr nn::AttentionNames kMovieGenNames{"to_q", "to_k", "to_v", "norm_q", "norm_k", "to_out"};

// What all layers read.
struct Context : nn::Pass {
  nn::Conditions conditions;
  Tensor positions;  // [S, D]
  nn::SelfTokens self;
  nn::TextTokens text;
};

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

  Stream forward(Tape& tape, Stream x, const Context& context) const {
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
      : NetworkFrame(c, seed, compute_dtype, where, trainable, true, ranks),
        time(make, "time_embed", c.width(), c.width()),
        rate(make, "fps_embed", c.width(), c.width()) {
    make.options.blocks = layout.blocks;
    for (int i = 0; i < c.num_layers; ++i) {
      begin_block(i);
      layers.emplace_back(make, "transformer_blocks." + std::to_string(i) + ".", c);
    }
    make.options.blocks = nullptr;
    begin_head();
    norm_out.emplace(moviegen_norm(make, "norm_out", c, 2));
    finish();
  }

  Context context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;

  nn::TimeEmbedding time, rate;
  std::deque<Layer> layers;
  std::optional<nn::AdaptiveNorm> norm_out;
};

Context State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  Context result;
  result.positions = positions(tape, pack, false);
  const auto embed = [&](const nn::TimeEmbedding& embedding, const Tensor& numbers) {
    return embedding.forward(tape, ops::sinusoid(numbers, config.width()));
  };
  nn::Conditions& conditions = result.conditions;
  const Tensor of_time = embed(time, pack.times);
  conditions.embedding = ops::silu(tape, ops::add(tape, of_time, embed(rate, pack.rates)));
  const Tensor ones({pack.times.elements(), config.width()});
  for (float& one : ones.floats())
    one = 1;
  conditions.ones = ones.to(device);
  conditions.rows = pack.rows;
  nn::Pass& pass = result;
  pass.recompute = recompute != nn::Recompute::none && tape.recording();
  if (pack.shard) pass.exchanges = nn::TokenExchanges(config.heads(), layout, *pack.shard);
  result.self = {pass, pack.self};
  result.text = {pass, text.to(device).to(compute), pack.cross};
  return result;
}

class Stages final : public nn::StackForward<Layer, Context> {
 public:
  Stages(const State& state, Tape& tape, const NetworkBatch& batch)
      : StackForward({state.layers, state.of_blocks, state.recompute, state.offload}, tape),
        s_(state),
        batch_(batch),
        pack_(checked_pack()) {
    s_.watch(tape_);
    context_ = s_.context(tape_, pack_, batch_.text);
    read_ = {context_.positions, context_.conditions.embedding};
  }

 private:
  Tensor start() override { return s_.enter(tape_, batch_, pack_); }
  Tensor finish(const Stream& stream) override {
    Stream x = stream;
    const Tensor normed = s_.norm_out->of(tape_, x, context_.conditions).values(tape_);
    return s_.leave(tape_, normed, pack_);
  }
  NetworkPack checked_pack() const {
    batch_.check(s_.config);
    return {s_.config, batch_, s_.device, s_.layout};
  }

  const State& s_;
  const NetworkBatch& batch_;
  const NetworkPack pack_;
};

class MovieGen final : public FramedNetwork {
 public:
  explicit MovieGen(std::unique_ptr<State> state) : FramedNetwork(std::move(state)) {}

  void set_inference_fp8(Fp8Parts parts) override { check_fp8(config(), state().compute, parts); }
  Tensor forward(Tape& tape, const NetworkBatch& batch) const override {
    return Stages(state(), tape, batch).forward();
  }
  std::unique_ptr<nn::StagedForward> stages(Tape& tape, const NetworkBatch& batch) const override {
    return std::make_unique<Stages>(state(), tape, batch);
  }

 private:
  const State& state() const { return static_cast<const State&>(*frame_); }
};

}  // namespace

std::unique_ptr<DiffusionNetwork> make_moviegen(const NetworkConfig& config, std::uint64_t seed,
                                                DType compute, Device device, bool trainable,
                                                const nn::NetworkLayout& layout) {
  return std::make_unique<MovieGen>(
      std::make_unique<State>(config, seed, compute, device, trainable, layout));
}

}  // namespace vfm::models
