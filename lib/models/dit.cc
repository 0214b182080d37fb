// Shape letters: S tokens of the pack, D width, H heads, K head dim, L text tokens of the pack, E
// text width, R samples of the pack.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "models/fp8.h"
#include "nn/weight.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/attention_fp8.h"
#include "ops/gelu.h"
#include "ops/lean_linear.h"
#include "ops/linear.h"
#include "ops/modulate.h"
#include "ops/patchify.h"
#include "ops/positions.h"
#include "ops/qk_norm_rope.h"
#include "ops/rmsnorm.h"
#include "ops/silu.h"

namespace vfm::models {
namespace {

using nn::Init;
using nn::Weight;
using ops::Tape;

constexpr float kNormEpsilon = 1e-6f;    // layer norms and the time embedding's norm
constexpr float kQkNormEpsilon = 1e-5f;  // diffusers'; NVIDIA's own code has 1e-6

// What all blocks read.
struct Context {
  Tensor positions;          // [S, D], or undefined
  Tensor embedding;          // [R, D]: SiLU of the normed sinusoid
  Tensor shared;             // [R, 3 D]: the modulation that all sub-layers share
  ops::RowMap rows;          // sample of each token
  Tensor text;               // [L, E]
  ops::RotaryAngles angles;  // [S, K / 2]
  ops::AttentionPack self, cross;
  bool lean = false;           // elementwise recompute
  bool fp8_attention = false;  // self-attention in FP8
};

// Between sub-layers the residual stream is x + gate * branch, not yet added: the next sub-layer's
// norm does it in passing. The gate is the last third of `gates`.
struct Stream {
  Tensor x, branch, gates;
};

// Makes weights in the order of diffusers' state dict.
struct Maker {
  std::deque<Weight>& weights;
  nn::WeightOptions options;  // seed, device, and the matrices' dtype

  Weight& make(std::vector<std::string> names, const Shape& shape, Init init, DType compute,
               bool decay) {
    nn::WeightOptions own = options;
    own.init = init;
    own.compute = compute;
    own.decay = decay;
    return weights.emplace_back(std::move(names), shape, own);
  }
  Weight& matrix(std::vector<std::string> names, std::int64_t rows, std::int64_t columns,
                 Init init = Init::xavier) {
    return make(std::move(names), {rows, columns}, init, options.compute, true);
  }
  // Conditioning is computed in f32: it is small, and sigma must not be rounded.
  Weight& conditioning(std::string name, std::int64_t rows, std::int64_t columns, Init init) {
    return make({std::move(name)}, {rows, columns}, init, DType::f32, true);
  }
  Weight& table(std::string name, const Shape& shape, Init init) {
    return make({std::move(name)}, shape, init, DType::f32, false);
  }
};

// SiLU(embedding) -> linear_1 -> linear_2, plus the shared vector: shift, scale and, in blocks,
// gate.
struct AdaLn {
  const Weight *down, *up;

  AdaLn(Maker& make, const std::string& prefix, const DitConfig& c, int parts)
      : down(&make.conditioning(prefix + ".linear_1.weight", c.adaln_lora_dim, c.width(),
                                Init::xavier)),
        up(&make.conditioning(prefix + ".linear_2.weight", std::int64_t{parts} * c.width(),
                              c.adaln_lora_dim, Init::zero)) {}

  Tensor forward(Tape& tape, const Context& context) const {
    const Tensor low = ops::linear(tape, context.embedding, down->op(tape));
    return ops::add(tape, ops::linear(tape, low, up->op(tape)), context.shared);
  }
};

struct Block {
  Block(Maker& make, const std::string& name, const DitConfig& c)
      : heads(c.num_attention_heads),
        head_dim(c.attention_head_dim),
        compute(make.options.compute),
        norm1(make, name + "norm1", c, 3),
        qkv(make.matrix(
            {name + "attn1.to_q.weight", name + "attn1.to_k.weight", name + "attn1.to_v.weight"},
            c.width(), c.width())),
        norm_q(make.table(name + "attn1.norm_q.weight", {head_dim}, Init::one)),
        norm_k(make.table(name + "attn1.norm_k.weight", {head_dim}, Init::one)),
        out(make.matrix({name + "attn1.to_out.0.weight"}, c.width(), c.width())),
        norm2(make, name + "norm2", c, 3),
        cross_q(make.matrix({name + "attn2.to_q.weight"}, c.width(), c.width())),
        cross_kv(make.matrix({name + "attn2.to_k.weight", name + "attn2.to_v.weight"}, c.width(),
                             c.text_embed_dim)),
        cross_norm_q(make.table(name + "attn2.norm_q.weight", {head_dim}, Init::one)),
        cross_norm_k(make.table(name + "attn2.norm_k.weight", {head_dim}, Init::one)),
        cross_out(make.matrix({name + "attn2.to_out.0.weight"}, c.width(), c.width())),
        norm3(make, name + "norm3", c, 3),
        up(make.matrix({name + "ff.net.0.proj.weight"},
                       static_cast<std::int64_t>(c.mlp_ratio * c.width()), c.width())),
        down(make.matrix({name + "ff.net.2.weight"}, c.width(),
                         static_cast<std::int64_t>(c.mlp_ratio * c.width()))) {}

  Stream forward(Tape& tape, const Stream& in, const Context& context) const {
    const auto [x1, qkv_1, gates1] = enter(tape, in, context, norm1, context.positions, qkv);
    const Stream after_self{x1, self_attention(tape, qkv_1, context), gates1};
    const auto [x2, q_2, gates2] = enter(tape, after_self, context, norm2, Tensor(), cross_q);
    const Stream after_cross{x2, cross_attention(tape, q_2, context), gates2};
    const auto [x3, hidden, gates3] = enter(tape, after_cross, context, norm3, Tensor(), up);
    return {x3, activate(tape, hidden, context), gates3};
  }

  // The stream with its branch added. The norm that comes with it is not used.
  Tensor merge(Tape& tape, const Stream& in, const Context& context) const {
    return ops::gated_residual_layernorm_modulate(tape, pending(in, context, in.gates)).stream;
  }

  // Copies of the block's matrices, which are nearly all of a model's products.
  void keep_fp8(bool keep) const {
    for (const Weight* w : {&qkv, &out, &cross_q, &cross_kv, &cross_out, &up, &down})
      w->keep_fp8(keep);
  }

 private:
  struct Entered {
    Tensor x, projected, gates;
  };

  ops::ModulateInput pending(const Stream& in, const Context& context,
                             const Tensor& modulation) const {
    ops::ModulateInput input;
    input.x = in.x;
    input.branch = in.branch;
    input.gate = in.gates;
    input.gate_column = 2 * in.x.size(1);
    input.modulation = modulation;
    input.rows = context.rows;
    input.epsilon = kNormEpsilon;
    input.out = compute;
    return input;
  }

  // Adds what is pending, norms and modulates for the next sub-layer, and goes through its first
  // matrix.
  Entered enter(Tape& tape, const Stream& in, const Context& context, const AdaLn& norm,
                const Tensor& extra, const Weight& matrix) const {
    ops::ModulateInput input = pending(in, context, norm.forward(tape, context));
    input.extra = extra;
    if (context.lean) {
      const ops::ModulatedLinear made = ops::modulate_linear(tape, input, matrix.op(tape));
      return {made.stream, made.y, input.modulation};
    }
    const auto [stream, normed] = ops::gated_residual_layernorm_modulate(tape, input);
    return {stream, matrix.multiply(tape, normed), input.modulation};
  }

  Tensor activate(Tape& tape, const Tensor& hidden, const Context& context) const {
    return context.lean ? ops::gelu_linear(tape, hidden, down.op(tape))
                        : down.multiply(tape, ops::gelu(tape, hidden));
  }

  Tensor self_attention(Tape& tape, const Tensor& projected, const Context& context) const {
    ops::QkNormRope layout;
    layout.query_heads = layout.key_heads = layout.value_heads = heads;
    layout.head_dim = head_dim;
    layout.query_weight = norm_q.op(tape);
    layout.key_weight = norm_k.op(tape);
    layout.cosines = context.angles.cosines;
    layout.sines = context.angles.sines;
    layout.epsilon = kQkNormEpsilon;
    const Tensor rotated = ops::qk_norm_rope(tape, projected, layout);
    const Tensor attended = context.fp8_attention
                                ? ops::self_attention_fp8(tape, rotated, context.self)
                                : ops::self_attention(tape, rotated, context.self);
    return out.multiply(tape, attended);
  }

  // Text has no positions, and all its tokens are seen.
  Tensor cross_attention(Tape& tape, const Tensor& projected, const Context& context) const {
    ops::QkNormRope queries, keys;
    queries.query_heads = keys.key_heads = keys.value_heads = heads;
    queries.head_dim = keys.head_dim = head_dim;
    queries.query_weight = cross_norm_q.op(tape);
    keys.key_weight = cross_norm_k.op(tape);
    queries.epsilon = keys.epsilon = kQkNormEpsilon;
    const Tensor q = ops::qk_norm_rope(tape, projected, queries);
    const Tensor kv = ops::qk_norm_rope(tape, cross_kv.multiply(tape, context.text), keys);
    return cross_out.multiply(tape, ops::cross_attention(tape, q, kv, context.cross));
  }

  int heads, head_dim;
  DType compute;
  AdaLn norm1;
  const Weight &qkv, &norm_q, &norm_k, &out;
  AdaLn norm2;
  const Weight &cross_q, &cross_kv, &cross_norm_q, &cross_norm_k, &cross_out;
  AdaLn norm3;
  const Weight &up, &down;
};

}  // namespace

struct Dit::State {
  State(const DitConfig& c, std::uint64_t seed, DType compute_dtype, Device where, bool trainable)
      : config(c), compute(compute_dtype), device(where) {
    const std::int64_t d = c.width();
    const std::int64_t patch = std::int64_t{c.patch_size[0]} * c.patch_size[1] * c.patch_size[2];
    Maker make{weights, {}};
    make.options.compute = compute;
    make.options.seed = seed;
    make.options.device = device;
    make.options.trainable = trainable;
    embed = &make.matrix({"patch_embed.proj.weight"}, d,
                         (c.in_channels + (c.concat_padding_mask ? 1 : 0)) * patch);
    if (c.learnable_positions)
      for (std::size_t i = 0; i < 3; ++i)
        tables[i] = &make.table(
            std::string("learnable_pos_embed.pos_emb_") + "thw" [i],
            { c.max_size[i] / c.patch_size[i], d }, Init::normal);
    time_1 = &make.conditioning("time_embed.t_embedder.linear_1.weight", d, d, Init::normal);
    time_2 = &make.conditioning("time_embed.t_embedder.linear_2.weight", 3 * d, d, Init::normal);
    time_norm = &make.table("time_embed.norm.weight", {d}, Init::one);
    for (int i = 0; i < c.num_layers; ++i)
      blocks.emplace_back(make, "transformer_blocks." + std::to_string(i) + ".", c);
    norm_out = std::make_unique<AdaLn>(make, "norm_out", c, 2);
    project = &make.matrix({"proj_out.weight"}, patch * c.out_channels, d);
    for (Weight& weight : weights)
      for (nn::Parameter& parameter : weight.parameters())
        parameters.push_back(&parameter);
  }

  Context context(Tape& tape, const DitBatch& batch) const;

  DitConfig config;
  DType compute;
  Device device;
  Recompute recompute = Recompute::none;
  Fp8Parts fp8;
  std::deque<Weight> weights;  // does not move them
  nn::ParameterList parameters;
  const Weight* embed = nullptr;
  std::array<const Weight*, 3> tables{};
  const Weight *time_1 = nullptr, *time_2 = nullptr, *time_norm = nullptr;
  std::deque<Block> blocks;
  std::unique_ptr<AdaLn> norm_out;
  const Weight* project = nullptr;
};

namespace {

std::vector<ops::PatchGrid> patch_grids(const DitBatch& batch) {
  std::vector<ops::PatchGrid> grids;
  for (const DitSample& s : batch.samples)
    grids.push_back({s.frames, s.height, s.width});
  return grids;
}

}  // namespace

Context Dit::State::context(Tape& tape, const DitBatch& batch) const {
  Context result;
  std::vector<ops::TokenGrid> grids;
  std::vector<float> times;
  const auto& p = config.patch_size;
  for (const DitSample& s : batch.samples) {
    grids.push_back({s.frames / p[0], s.height / p[1], s.width / p[2], s.fps, s.position_step});
    times.push_back(s.c_noise);
    result.self.query_lengths.push_back(s.tokens(config));
    result.cross.key_lengths.push_back(s.text_tokens);
  }
  result.self.heads = result.self.key_heads = config.num_attention_heads;
  result.self.head_dim = config.attention_head_dim;
  result.cross.heads = result.cross.key_heads = config.num_attention_heads;
  result.cross.head_dim = config.attention_head_dim;
  result.self.key_lengths = result.cross.query_lengths = result.self.query_lengths;
  ops::prepare(result.self, device);
  ops::prepare(result.cross, device);
  std::vector<std::int32_t> rows;
  for (std::size_t r = 0; r < batch.samples.size(); ++r)
    rows.insert(rows.end(), static_cast<std::size_t>(result.self.query_lengths[r]),
                static_cast<std::int32_t>(r));
  // A block of the GPU works on one run: narrow rows take fewer tokens, so that there are enough.
  const std::int64_t longest =
      device == Device::cpu ? 64 : std::clamp<std::int64_t>(64 * config.width() / 4096, 8, 64);
  result.rows = ops::RowMap(rows, device, longest);
  if (config.learnable_positions)
    result.positions = ops::learned_positions(tape, tables[0]->op(tape), tables[1]->op(tape),
                                              tables[2]->op(tape), grids);
  result.angles = ops::rotary_angles(grids, config.attention_head_dim, config.rope_scale);
  result.angles.cosines = result.angles.cosines.to(device);
  result.angles.sines = result.angles.sines.to(device);
  const Tensor wave = ops::sinusoid(times, config.width()).to(device);
  const Tensor hidden = ops::silu(tape, ops::linear(tape, wave, time_1->op(tape)));
  result.shared = ops::linear(tape, hidden, time_2->op(tape));
  result.embedding = ops::silu(tape, ops::rmsnorm(tape, wave, time_norm->op(tape), kNormEpsilon));
  result.text = batch.text.to(device).to(compute);
  result.lean = recompute != Recompute::none && tape.recording();
  result.fp8_attention = fp8.attention;
  return result;
}

Dit::Dit(const DitConfig& config, std::uint64_t seed, DType compute, Device device,
         bool trainable) {
  config.validate();
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("the model computes in f32 or bf16, not {}", dtype_name(compute));
  state_ = std::make_unique<State>(config, seed, compute, device, trainable);
}
Dit::~Dit() = default;
Dit::Dit(Dit&&) noexcept = default;

const DitConfig& Dit::config() const {
  return state_->config;
}
Device Dit::device() const {
  return state_->device;
}
const nn::ParameterList& Dit::parameters() const {
  return state_->parameters;
}
void Dit::set_recompute(Recompute recompute) {
  state_->recompute = recompute;
}
void Dit::set_inference_fp8(Fp8Parts parts) {
  check_fp8(config(), state_->compute, parts);
  for (const Block& block : state_->blocks)
    block.keep_fp8(parts.linear);
  state_->fp8 = parts;
}

Tensor Dit::forward(Tape& tape, const DitBatch& batch) const {
  const State& s = *state_;
  const DitConfig& c = s.config;
  batch.check(c);
  if (s.fp8.any() && tape.recording()) fail("FP8 is for inference: a tape must not record");
  const std::vector<ops::PatchGrid> grids = patch_grids(batch);
  // Every parameter is watched before the first block, so that a recomputed block finds it.
  for (const Weight& weight : s.weights)
    weight.op(tape);
  const Context context = s.context(tape, batch);
  const Tensor patches = ops::patchify(tape, batch.latents.to(s.device), grids, c.in_channels,
                                       c.concat_padding_mask ? 1 : 0, c.patch_size, s.compute);
  Stream stream;
  stream.x = ops::linear(tape, patches, s.embed->op(tape), Tensor(), DType::f32);
  for (const Block& block : s.blocks) {
    if (s.recompute != Recompute::block) {
      stream = block.forward(tape, stream, context);
      continue;
    }
    // What is kept between blocks is the sum alone.
    const auto run = [&block, x = stream.x, context](Tape& inner) {
      const Stream result = block.forward(inner, {x, Tensor(), Tensor()}, context);
      return std::vector<Tensor>{block.merge(inner, result, context)};
    };
    stream.x =
        tape.checkpoint({stream.x, context.positions, context.embedding, context.shared}, run)[0];
  }
  ops::ModulateInput last;
  last.x = stream.x;
  last.branch = stream.branch;
  last.gate = stream.gates;
  last.gate_column = 2 * c.width();
  last.modulation = s.norm_out->forward(tape, context);
  last.rows = context.rows;
  last.epsilon = kNormEpsilon;
  last.out = s.compute;
  const Tensor normed = ops::gated_residual_layernorm_modulate(tape, last).normed;
  const Tensor tokens = ops::linear(tape, normed, s.project->op(tape), Tensor(), DType::f32);
  return ops::unpatchify(tape, tokens, grids, c.out_channels, c.patch_size);
}

}  // namespace vfm::models
