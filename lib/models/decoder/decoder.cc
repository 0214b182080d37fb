// Shape letters: S tokens, D width, H heads, G key/value heads, K head dim, L text tokens, E text
// width, V vocabulary.
// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder.h"

#include <deque>
#include <string>

#include "base/error.h"
#include "models/weight_maker.h"
#include "ops/attention/attention.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/embedding.h"
#include "ops/pointwise/swiglu.h"
#include "ops/position/positions.h"
#include "ops/position/qk_norm_rope.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

using nn::Init;
using nn::Weight;
using ops::Tape;

constexpr float kEpsilon = 1e-5f;

// What all layers read.
struct DecoderContext {
  ops::RotaryAngles angles;  // [S, K / 2]
  Tensor text;               // [L, E], or undefined
  ops::AttentionPack self, cross;
  bool recompute = false;  // elementwise recompute
};

// Keys and values of what one layer has seen: [codes, 2 G K], and of the text.
struct LayerMemory {
  Tensor seen, text;
};

class DecoderLayer {
 public:
  DecoderLayer(WeightMaker& make, const std::string& name, const DecoderConfig& c)
      : heads_(c.num_attention_heads),
        key_heads_(c.key_value_heads()),
        head_dim_(c.attention_head_dim),
        compute_(make.options.compute),
        has_text_(c.text_embed_dim > 0),
        norm1_(make.table(name + "input_layernorm.weight", {c.width()}, Init::one)),
        qkv_(make.stacked({{name + "self_attn.q_proj.weight", c.width()},
                           {name + "self_attn.k_proj.weight", keys_width()},
                           {name + "self_attn.v_proj.weight", keys_width()}},
                          c.width())),
        norm_q_(make.table(name + "self_attn.q_norm.weight", {head_dim_}, Init::one)),
        norm_k_(make.table(name + "self_attn.k_norm.weight", {head_dim_}, Init::one)),
        out_(make.matrix({name + "self_attn.o_proj.weight"}, c.width(), c.width())) {
    if (has_text_) {
      cross_norm_ = &make.table(name + "cross_attn_layernorm.weight", {c.width()}, Init::one);
      cross_q_ = &make.matrix({name + "cross_attn.q_proj.weight"}, c.width(), c.width());
      cross_kv_ =
          &make.matrix({name + "cross_attn.k_proj.weight", name + "cross_attn.v_proj.weight"},
                       keys_width(), c.text_embed_dim);
      cross_norm_q_ = &make.table(name + "cross_attn.q_norm.weight", {head_dim_}, Init::one);
      cross_norm_k_ = &make.table(name + "cross_attn.k_norm.weight", {head_dim_}, Init::one);
      cross_out_ = &make.matrix({name + "cross_attn.o_proj.weight"}, c.width(), c.width());
    }
    norm2_ = &make.table(name + "post_attention_layernorm.weight", {c.width()}, Init::one);
    up_ = &make.matrix({name + "mlp.gate_proj.weight", name + "mlp.up_proj.weight"}, c.hidden(),
                       c.width());
    down_ = &make.matrix({name + "mlp.down_proj.weight"}, c.width(), c.hidden());
  }

  // With a memory x is one token, which is added to it: its row `at`.
  Tensor forward(Tape& tape, Tensor x, const DecoderContext& context,
                 const LayerMemory* memory = nullptr, std::int64_t at = 0) const {
    const Tensor qkv = of_normed(tape, x, norm1_, qkv_, context);
    const ops::QkNormRope rows = self_layout(tape, context);
    const Tensor attended =
        memory ? recall(tape, ops::qk_norm_rope(tape, qkv, rows), context, memory->seen, at)
               : ops::normed_self_attention(tape, qkv, rows, context.self);
    x = add(tape, x, attended, out_);
    if (has_text_) {
      const Tensor kv = memory ? memory->text : text_keys(tape, context.text);
      const Tensor q = ops::qk_norm_rope(tape, of_normed(tape, x, *cross_norm_, *cross_q_, context),
                                         layout(heads_, 0, 0, cross_norm_q_->op(tape), Tensor()));
      x = add(tape, x, ops::cross_attention(tape, q, kv, context.cross), *cross_out_);
    }
    const Tensor hidden = of_normed(tape, x, *norm2_, *up_, context);
    if (context.recompute)
      return ops::add(tape, x, ops::swiglu_linear(tape, hidden, down_->op(tape), DType::f32));
    return add(tape, x, ops::swiglu(tape, hidden), *down_);
  }

  // Keys and values of the text, [L, 2 G K].
  Tensor text_keys(Tape& tape, const Tensor& text) const {
    return ops::qk_norm_rope(tape, ops::linear(tape, text, cross_kv_->op(tape)),
                             layout(0, key_heads_, key_heads_, Tensor(), cross_norm_k_->op(tape)));
  }

 private:
  std::int64_t keys_width() const { return std::int64_t{key_heads_} * head_dim_; }

  ops::QkNormRope layout(int queries, int keys, int values, Tensor query_weight,
                         Tensor key_weight) const {
    ops::QkNormRope made;
    made.query_heads = queries;
    made.key_heads = keys;
    made.value_heads = values;
    made.head_dim = head_dim_;
    made.query_weight = std::move(query_weight);
    made.key_weight = std::move(key_weight);
    made.epsilon = kEpsilon;
    return made;
  }
  ops::QkNormRope self_layout(Tape& tape, const DecoderContext& context) const {
    ops::QkNormRope made =
        layout(heads_, key_heads_, key_heads_, norm_q_.op(tape), norm_k_.op(tape));
    made.cosines = context.angles.cosines;
    made.sines = context.angles.sines;
    return made;
  }
  // W norm(x).
  Tensor of_normed(Tape& tape, const Tensor& x, const Weight& norm, const Weight& w,
                   const DecoderContext& context) const {
    if (context.recompute) return ops::rmsnorm_linear(tape, x, norm.op(tape), kEpsilon, w.op(tape));
    const Tensor normed = ops::rmsnorm(tape, x, norm.op(tape), kEpsilon);
    return ops::linear(tape, ops::cast(tape, normed, compute_), w.op(tape));
  }
  // x + y W^T, summed in f32.
  static Tensor add(Tape& tape, const Tensor& x, const Tensor& y, const Weight& w) {
    return ops::add(tape, x, ops::linear(tape, y, w.op(tape), Tensor(), DType::f32));
  }

  // One token's attention to itself and what was before it. In its row the queries stand before
  // keys and values.
  Tensor recall(Tape& tape, const Tensor& qkv, const DecoderContext& context, const Tensor& seen,
                std::int64_t at) const {
    const Tensor by_head = qkv.reshape({heads_ + 2 * key_heads_, head_dim_});
    const Tensor q = by_head.rows(0, heads_).reshape({1, std::int64_t{heads_} * head_dim_});
    copy(by_head.rows(heads_, heads_ + 2 * key_heads_).reshape({1, 2 * keys_width()}),
         seen.rows(at, at + 1));
    ops::AttentionPack pack = context.self;
    pack.query_lengths = {1};
    pack.key_lengths = {at + 1};
    return ops::cross_attention(tape, q, seen.rows(0, at + 1), pack);
  }

  int heads_, key_heads_, head_dim_;
  DType compute_;
  bool has_text_;
  const Weight &norm1_, &qkv_, &norm_q_, &norm_k_, &out_;
  const Weight *cross_norm_ = nullptr, *cross_q_ = nullptr, *cross_kv_ = nullptr,
               *cross_norm_q_ = nullptr, *cross_norm_k_ = nullptr, *cross_out_ = nullptr;
  const Weight *norm2_ = nullptr, *up_ = nullptr, *down_ = nullptr;
};

ops::AttentionPack heads_of(const DecoderConfig& c, bool causal) {
  ops::AttentionPack pack;
  pack.heads = c.num_attention_heads;
  pack.key_heads = c.key_value_heads();
  pack.head_dim = c.attention_head_dim;
  pack.causal = causal;
  return pack;
}

}  // namespace

struct CausalDecoder::State {
  State(const DecoderConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable)
      : config(c), compute(compute_dtype), device(where) {
    WeightMaker make{weights, {}};
    make.options.compute = compute;
    make.options.seed = seed;
    make.options.device = device;
    make.options.trainable = trainable;
    // The last row is what stands before the first code.
    table = &make.make({"embed_tokens.weight"}, {c.vocabulary + 1, c.width()}, Init::normal,
                       compute, true);
    for (int i = 0; i < c.num_layers; ++i)
      layers.emplace_back(make, "layers." + std::to_string(i) + ".", c);
    norm = &make.table("norm.weight", {c.width()}, Init::one);
    head = &make.matrix({"lm_head.weight"}, c.vocabulary, c.width());
    for (Weight& weight : weights)
      for (nn::Parameter& parameter : weight.parameters())
        parameters.push_back(&parameter);
  }

  ops::RotaryAngles angles(const std::vector<CodeSample>& samples) const {
    std::vector<ops::TokenGrid> grids;
    for (const CodeSample& s : samples)
      grids.push_back({s.frames, s.height, s.width, 0, {1, 1, 1}});
    ops::RotaryOptions options;
    options.theta = config.rope_theta;
    options.yarn_scale = config.yarn_scale;
    options.yarn_frames = config.yarn_frames;
    options.yarn_betas = config.yarn_betas;
    options.device = device;
    return ops::rotary_angles(grids, config.attention_head_dim, {1, 1, 1}, options);
  }

  Tensor embed(Tape& tape, std::span<const std::int32_t> codes) const {
    return ops::cast(tape, ops::embedding(tape, table->op(tape), codes), DType::f32);
  }
  Tensor logits(Tape& tape, const Tensor& x) const {
    const Tensor last = ops::cast(tape, ops::rmsnorm(tape, x, norm->op(tape), kEpsilon), compute);
    return ops::linear(tape, last, head->op(tape), Tensor(), DType::f32);
  }

  DecoderConfig config;
  DType compute;
  Device device;
  Recompute recompute = Recompute::none;
  bool offload = false;
  std::deque<Weight> weights;  // does not move them
  nn::ParameterList parameters;
  const Weight* table = nullptr;
  std::deque<DecoderLayer> layers;
  const Weight *norm = nullptr, *head = nullptr;
};

CausalDecoder::CausalDecoder(const DecoderConfig& config, std::uint64_t seed, DType compute,
                             Device device, bool trainable) {
  config.validate();
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("the model computes in f32 or bf16, not {}", dtype_name(compute));
  state_ = std::make_unique<State>(config, seed, compute, device, trainable);
}
CausalDecoder::~CausalDecoder() = default;
CausalDecoder::CausalDecoder(CausalDecoder&&) noexcept = default;

const DecoderConfig& CausalDecoder::config() const {
  return state_->config;
}
Device CausalDecoder::device() const {
  return state_->device;
}
const nn::ParameterList& CausalDecoder::parameters() const {
  return state_->parameters;
}
void CausalDecoder::set_recompute(Recompute recompute, bool offload) {
  state_->recompute = recompute;
  state_->offload = offload;
}

Tensor CausalDecoder::forward(Tape& tape, const CodeBatch& batch) const {
  const State& s = *state_;
  batch.check(s.config);
  // Every parameter is watched before the first layer, so that a recomputed layer finds it.
  for (const Weight& weight : s.weights)
    weight.op(tape);
  DecoderContext context;
  context.angles = s.angles(batch.samples);
  context.self = heads_of(s.config, true);
  context.cross = heads_of(s.config, false);
  context.recompute = s.recompute != Recompute::none && tape.recording();
  if (batch.text.defined()) context.text = batch.text.to(s.device).to(s.compute);
  std::vector<std::int32_t> known;  // when each code is written
  for (const CodeSample& sample : batch.samples) {
    const auto begin = static_cast<std::ptrdiff_t>(known.size());
    known.push_back(s.config.vocabulary);
    known.insert(known.end(), batch.codes.begin() + begin,
                 batch.codes.begin() + begin + sample.codes() - 1);
    context.self.query_lengths.push_back(sample.codes());
    context.cross.key_lengths.push_back(sample.text_tokens);
  }
  context.self.key_lengths = context.cross.query_lengths = context.self.query_lengths;
  ops::prepare(context.self, s.device);
  ops::prepare(context.cross, s.device);
  const ops::KeptOfBlock kept = kept_of(s.recompute, s.offload);
  // A block too, where that decides what is free to wait elsewhere.
  const auto embed = [&s, known](Tape& inner, const Tensor&) {
    return std::vector{s.embed(inner, known)};
  };
  const Tensor& table = s.table->op(tape);
  Tensor x = kept.offload ? tape.checkpoint(table, {}, embed)[0] : embed(tape, table)[0];
  for (const DecoderLayer& layer : s.layers) {
    if (s.recompute < Recompute::block_but_attention) {
      x = layer.forward(tape, x, context);
      continue;
    }
    const auto run = [&layer, context](Tape& inner, const Tensor& in) {
      return std::vector<Tensor>{layer.forward(inner, in, context)};
    };
    x = tape.checkpoint(x, {}, run, kept)[0];
  }
  return s.logits(tape, x);
}

struct CodeWriter::State {
  const CausalDecoder::State& decoder;
  CodeSample sample;
  DecoderContext context;            // angles of all codes
  std::deque<LayerMemory> memories;  // of the layers
  std::int64_t written = 0;
  std::int32_t last;  // what was written, or the start
};

CodeWriter::CodeWriter(const CausalDecoder& decoder, const CodeSample& sample, const Tensor& text)
    : state_(std::make_unique<State>(State{*decoder.state_, sample, {}, {}, 0, 0})) {
  State& s = *state_;
  const DecoderConfig& c = s.decoder.config;
  if (text.defined() != (c.text_embed_dim > 0) ||
      (text.defined() && text.shape() != Shape{sample.text_tokens, c.text_embed_dim}))
    fail("text {} for a model of text width {}", to_string(text.shape()), c.text_embed_dim);
  s.last = c.vocabulary;
  s.context.angles = s.decoder.angles({sample});
  s.context.self = heads_of(c, true);
  s.context.cross = heads_of(c, false);
  s.context.cross.query_lengths = {1};
  s.context.cross.key_lengths = {sample.text_tokens};
  ops::prepare(s.context.cross, s.decoder.device);
  const std::int64_t keys = 2 * std::int64_t{c.key_value_heads()} * c.attention_head_dim;
  Tape silent(false);
  for (const DecoderLayer& layer : s.decoder.layers) {
    LayerMemory& memory = s.memories.emplace_back();
    memory.seen = Tensor({sample.codes(), keys}, s.decoder.compute, s.decoder.device);
    if (text.defined())
      memory.text =
          layer.text_keys(silent, text.to(s.decoder.device).to(s.decoder.compute)).clone();
  }
}
CodeWriter::~CodeWriter() = default;

std::int64_t CodeWriter::written() const {
  return state_->written;
}

std::vector<float> CodeWriter::logits() {
  State& s = *state_;
  if (s.written >= s.sample.codes()) fail("all {} codes are written", s.written);
  Tape silent(false);
  DecoderContext context = s.context;
  context.angles.cosines = s.context.angles.cosines.rows(s.written, s.written + 1);
  context.angles.sines = s.context.angles.sines.rows(s.written, s.written + 1);
  Tensor x = s.decoder.embed(silent, std::span(&s.last, 1));
  std::size_t i = 0;
  for (const DecoderLayer& layer : s.decoder.layers)
    x = layer.forward(silent, x, context, &s.memories[i++], s.written);
  Tensor result = s.decoder.logits(silent, x);
  if (result.device() == Device::meta) return {};
  result = result.to(Device::cpu);
  return {result.floats().begin(), result.floats().end()};
}

void CodeWriter::write(std::int32_t code) {
  if (code < 0 || code >= state_->decoder.config.vocabulary)
    fail("code {} of a vocabulary of {}", code, state_->decoder.config.vocabulary);
  state_->last = code;
  ++state_->written;
}

}  // namespace vfm::models
