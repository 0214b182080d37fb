// Shape letters: S tokens of the pack, D width, H heads, K head dim, L text tokens of the pack, E
// text width, R samples of the pack.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit.h"

#include <deque>

#include "base/error.h"
#include "models/dit_block.h"
#include "models/fp8.h"
#include "models/network_pack.h"
#include "ops/linear.h"
#include "ops/patchify.h"
#include "ops/rmsnorm.h"
#include "ops/silu.h"

namespace vfm::models {

using nn::Init;
using nn::Weight;
using ops::Tape;

struct Dit::State {
  State(const DitConfig& c, std::uint64_t seed, DType compute_dtype, Device where, bool trainable)
      : config(c), compute(compute_dtype), device(where) {
    const std::int64_t d = c.width();
    const std::int64_t patch = std::int64_t{c.patch_size[0]} * c.patch_size[1] * c.patch_size[2];
    WeightMaker make{weights, {}};
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

  DitContext context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;

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
  std::deque<DitBlock> blocks;
  std::unique_ptr<AdaLn> norm_out;
  const Weight* project = nullptr;
};

DitContext Dit::State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  DitContext result;
  const std::vector<ops::TokenGrid>& grids = pack.grids;
  result.self = pack.self;
  result.cross = pack.cross;
  result.rows = pack.rows;
  if (config.learnable_positions)
    result.positions = ops::learned_positions(tape, tables[0]->op(tape), tables[1]->op(tape),
                                              tables[2]->op(tape), grids);
  result.angles = ops::rotary_angles(grids, config.attention_head_dim, config.rope_scale);
  result.angles.cosines = result.angles.cosines.to(device);
  result.angles.sines = result.angles.sines.to(device);
  if (config.type == NetworkType::stdit)
    result.space_time =
        space_time_packs(grids, config.num_attention_heads, config.attention_head_dim, device);
  const Tensor wave = ops::sinusoid(pack.times, config.width());
  const Tensor hidden = ops::silu(tape, ops::linear(tape, wave, time_1->op(tape)));
  result.shared = ops::linear(tape, hidden, time_2->op(tape));
  result.embedding =
      ops::silu(tape, ops::rmsnorm(tape, wave, time_norm->op(tape), kDitNormEpsilon));
  result.text = text.to(device).to(compute);
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
  for (const DitBlock& block : state_->blocks)
    block.keep_fp8(parts.linear);
  state_->fp8 = parts;
}

Tensor Dit::forward(Tape& tape, const DitBatch& batch) const {
  const State& s = *state_;
  const DitConfig& c = s.config;
  batch.check(c);
  if (s.fp8.any() && tape.recording()) fail("FP8 is for inference: a tape must not record");
  const NetworkPack pack(c, batch, s.device);
  // Every parameter is watched before the first block, so that a recomputed block finds it.
  for (const Weight& weight : s.weights)
    weight.op(tape);
  const DitContext context = s.context(tape, pack, batch.text);
  const Tensor patches =
      ops::patchify(tape, batch.latents.to(s.device), pack.patches, c.in_channels,
                    c.concat_padding_mask ? 1 : 0, c.patch_size, s.compute);
  DitStream stream;
  stream.x = ops::linear(tape, patches, s.embed->op(tape), Tensor(), DType::f32);
  for (const DitBlock& block : s.blocks) {
    if (s.recompute != Recompute::block) {
      stream = block.forward(tape, stream, context);
      continue;
    }
    // What is kept between blocks is the sum alone.
    const auto run = [&block, x = stream.x, context](Tape& inner) {
      const DitStream result = block.forward(inner, {x, Tensor(), Tensor()}, context);
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
  last.epsilon = kDitNormEpsilon;
  last.out = s.compute;
  const Tensor normed = ops::gated_residual_layernorm_modulate(tape, last).normed;
  const Tensor tokens = ops::linear(tape, normed, s.project->op(tape), Tensor(), DType::f32);
  return ops::unpatchify(tape, tokens, pack.patches, c.out_channels, c.patch_size);
}

}  // namespace vfm::models
