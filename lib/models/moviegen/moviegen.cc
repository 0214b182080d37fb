// Shape letters: S tokens of the pack, D width, H heads, G key/value heads, K head dim, L text
// tokens of the pack, E text width, R samples of the pack.
// SPDX-License-Identifier: Apache-2.0
#include "models/moviegen/moviegen.h"

#include <deque>
#include <utility>

#include "base/error.h"
#include "models/dit/fp8.h"
#include "models/dit/framed_network.h"
#include "models/dit/network_frame.h"
#include "nn/heads.h"
#include "nn/stack.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/modulate.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/silu.h"
#include "ops/pointwise/swiglu.h"

namespace vfm::models {
namespace {

using nn::Init;
using nn::Stream;
using nn::Weight;
using ops::Tape;

constexpr float kNormEpsilon = 1e-5f;

// What all layers read.
struct Context {
  Tensor positions;  // [S, D]
  Tensor embedding;  // [R, D]: e
  Tensor ones;       // [R, D]: the gate of what has none
  Tensor text;       // [L, E]
  ops::RowMap rows;
  ops::AttentionPack self, cross;
  nn::TokenExchanges exchanges;
  bool recompute = false;  // elementwise recompute
};

// A norm's input: the stream, what is pending in it, and (shift, scale, ...) by sample.
ops::ModulateInput pending(const Stream& in, const Context& context, const Tensor& modulation,
                           DType compute) {
  ops::ModulateInput input = nn::pending(in, context.rows, modulation);
  input.epsilon = kNormEpsilon;
  input.centred = false;
  input.out = compute;
  return input;
}

// This rank's heads of the attention `name`, with norms or without.
nn::Heads make_heads(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c,
                     const nn::NetworkLayout& layout) {
  const nn::HeadShape shape = c.heads().share(layout.tp_size());
  if (!c.own<MovieGenFields>().qk_norm) return nn::Heads(shape);
  return {make, shape, name + ".norm_q.weight", name + ".norm_k.weight", kNormEpsilon};
}

class Layer {
 public:
  Layer(nn::WeightMaker& make, const std::string& name, const NetworkConfig& c,
        const nn::NetworkLayout& layout)
      : compute_(make.options.compute),
        width_(c.width()),
        norm1_(make.conditioning(name + "norm1.linear.weight", 3 * width_, width_, Init::zero)),
        qkv_(make.stacked({{name + "attn1.to_q.weight", width_},
                           {name + "attn1.to_k.weight", keys_width(c)},
                           {name + "attn1.to_v.weight", keys_width(c)}},
                          width_, layout.cut(0))),
        heads_(make_heads(make, name + "attn1", c, layout)),
        out_(make.part({name + "attn1.to_out.weight"}, width_, width_, layout.cut(1))),
        cross_q_(make.part({name + "attn2.to_q.weight"}, width_, width_, layout.cut(0))),
        cross_kv_(make.part({name + "attn2.to_k.weight", name + "attn2.to_v.weight"}, keys_width(c),
                            c.text_embed_dim, layout.cut(0))),
        cross_heads_(make_heads(make, name + "attn2", c, layout)),
        cross_out_(make.part({name + "attn2.to_out.weight"}, width_, width_, layout.cut(1))),
        norm2_(make.conditioning(name + "norm2.linear.weight", 3 * width_, width_, Init::zero)),
        up_(make.part({name + "ff.gate_proj.weight", name + "ff.up_proj.weight"}, c.hidden(),
                      width_, layout.cut(0))),
        down_(make.part({name + "ff.down_proj.weight"}, width_, c.hidden(), layout.cut(1))) {}

  Stream forward(Tape& tape, const Stream& in, const Context& context) const {
    const Tensor modulation1 = norm1_.multiply(tape, context.embedding);
    ops::ModulateInput input = pending(in, context, modulation1, compute_);
    input.extra = context.positions;
    const auto [x1, qkv] = enter(tape, input, context, qkv_);
    const Tensor added = out_.multiply_summed(
        tape, heads_.attend(tape, qkv, {}, context.self, context.exchanges), context.exchanges.sum);
    const Tensor x2 = merge(tape, {x1, added, modulation1, 2 * width_}, context);
    const Stream after_cross{x2, cross_attention(tape, x2, context), context.ones, 0};
    const Tensor modulation2 = norm2_.multiply(tape, context.embedding);
    const auto [x3, hidden] =
        enter(tape, pending(after_cross, context, modulation2, compute_), context, up_);
    const ops::Exchange& sum = context.exchanges.sum;
    const Tensor branch =
        context.recompute
            ? ops::swiglu_linear(tape, hidden, down_.matrix(tape), hidden.dtype(), sum)
            : down_.multiply_summed(tape, ops::swiglu(tape, hidden), sum);
    return {x3, branch, modulation2, 2 * width_};
  }

  // The stream with its branch added.
  Tensor merge(Tape& tape, const Stream& in, const Context& context) const {
    return ops::gated_residual(tape, pending(in, context, Tensor(), compute_));
  }

 private:
  static std::int64_t keys_width(const NetworkConfig& c) {
    return std::int64_t{c.key_value_heads()} * c.attention_head_dim;
  }

  // Adds what is pending, norms and modulates, and goes through the sub-layer's first matrix.
  static ops::ModulatedLinear enter(Tape& tape, const ops::ModulateInput& input,
                                    const Context& context, const Weight& matrix) {
    const ops::Exchange& gather = context.exchanges.gather;
    if (context.recompute) return ops::modulate_linear(tape, input, matrix.matrix(tape), gather);
    const auto [stream, normed] = ops::gated_residual_layernorm_modulate(tape, input);
    return {stream, matrix.multiply_gathered(tape, normed, gather)};
  }

  Tensor cross_attention(Tape& tape, const Tensor& x, const Context& context) const {
    const Tensor q = cross_heads_.queries(
        tape,
        cross_q_.multiply_gathered(tape, ops::cast(tape, x, compute_), context.exchanges.gather));
    const Tensor kv = cross_heads_.keys(tape, cross_kv_.multiply(tape, context.text));
    return cross_out_.multiply_summed(tape, ops::cross_attention(tape, q, kv, context.cross),
                                      context.exchanges.sum);
  }

  DType compute_;
  std::int64_t width_;
  const Weight &norm1_, &qkv_;
  nn::Heads heads_;
  const Weight &out_, &cross_q_, &cross_kv_;
  nn::Heads cross_heads_;
  const Weight &cross_out_, &norm2_, &up_, &down_;
};

// Two matrices over the sinusoid of a number.
struct Embedder {
  Embedder(nn::WeightMaker& make, const std::string& name, std::int64_t width)
      : first(make.conditioning(name + ".linear_1.weight", width, width, Init::normal)),
        second(make.conditioning(name + ".linear_2.weight", width, width, Init::normal)) {}

  Tensor forward(Tape& tape, const Tensor& numbers) const {
    const int width = static_cast<int>(first.matrix(tape).w.size(1));
    const Tensor wave = ops::sinusoid(numbers, width);
    return second.multiply(tape, ops::silu(tape, first.multiply(tape, wave)));
  }

  const Weight &first, &second;
};

struct State : NetworkFrame {
  State(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable, true, ranks),
        time(make, "time_embed", c.width()),
        rate(make, "fps_embed", c.width()) {
    make.options.blocks = layout.blocks;
    for (int i = 0; i < c.num_layers; ++i) {
      begin_block(i);
      layers.emplace_back(make, "transformer_blocks." + std::to_string(i) + ".", c, layout);
    }
    make.options.blocks = nullptr;
    begin_head();
    norm_out = &make.conditioning("norm_out.linear.weight", 2 * std::int64_t{c.width()}, c.width(),
                                  Init::zero);
    finish();
  }

  Context context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;

  Embedder time, rate;
  std::deque<Layer> layers;
  const Weight* norm_out = nullptr;
};

Context State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  Context result;
  result.positions = positions(tape, pack, false);
  const Tensor sum = ops::add(tape, time.forward(tape, pack.times), rate.forward(tape, pack.rates));
  result.embedding = ops::silu(tape, sum);
  const Tensor ones({pack.times.elements(), config.width()});
  for (float& one : ones.floats())
    one = 1;
  result.ones = ones.to(device);
  result.text = text.to(device).to(compute);
  result.rows = pack.rows;
  result.self = pack.self;
  result.cross = pack.cross;
  if (pack.shard) result.exchanges = nn::TokenExchanges(config.heads(), layout, *pack.shard);
  result.recompute = recompute != nn::Recompute::none && tape.recording();
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
    read_ = {context_.positions, context_.embedding};
  }

 private:
  Tensor start() override { return s_.enter(tape_, batch_, pack_); }
  Tensor finish(const Stream& stream) override {
    const Tensor modulation = s_.norm_out->multiply(tape_, context_.embedding);
    const ops::ModulateInput last = pending(stream, context_, modulation, s_.compute);
    return s_.leave(tape_, ops::gated_residual_layernorm_modulate(tape_, last).normed, pack_);
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
