// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_frame.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/dit/architecture.h"
#include "ops/conv/patchify.h"

namespace vfm::models {

using nn::Init;

NetworkFrame::NetworkFrame(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype,
                           Device where, bool trainable, const nn::NetworkLayout& ranks,
                           const FrameParts& parts)
    : config(c),
      compute(compute_dtype),
      device(where),
      layout(ranks),
      make{weights, {}, ranks},
      biases_(parts.biases) {
  config.validate();
  layout.check(config.num_layers, config.heads());
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("the model computes in f32 or bf16, not {}", dtype_name(compute));
  make.options.compute = compute;
  make.options.seed = seed;
  make.options.device = device;
  make.options.trainable = trainable;
  make.options.absent = !layout.first_stage();
  make.options.state = layout.state;
  make.options.to_quantize = layout.quantized.has_value();
  embed_.emplace(first_or_last(
      make.matrix({"patch_embed.proj.weight"}, c.width(), (c.in_channels + masks()) * patch())));
  // What comes before the blocks besides, all of them read.
  make.options.absent = false;
  make.options.on_all_stages = layout.pp_size() > 1;
  if (!has_tables(config)) return;
  const std::array<const char*, 3> names = {"pos_emb_t", "pos_emb_h", "pos_emb_w"};
  for (std::size_t i = 0; i < 3; ++i)
    tables_[i] = &make.table(std::string("learnable_pos_embed.") + names[i],
                             {c.max_size[i] / c.patch_size[i], c.width()}, Init::normal);
}

std::int64_t NetworkFrame::patch() const {
  const auto& p = config.patch_size;
  return std::int64_t{p[0]} * p[1] * p[2];
}

void NetworkFrame::begin_block(int i) {
  make.options.absent = !layout.has_block(i, config.num_layers);
  make.options.on_all_stages = false;
  of_blocks.begin();
}

void NetworkFrame::begin_head() {
  make.options.absent = !layout.last_stage();
  make.options.on_all_stages = false;
}

void NetworkFrame::finish(nn::AdaptiveNorm last_norm) {
  last_norm_.emplace(std::move(last_norm));
  project_.emplace(first_or_last(
      make.matrix({"proj_out.weight"}, patch() * config.out_channels, config.width())));
  for (nn::Weight& weight : weights)
    for (nn::Parameter& parameter : weight.parameters())
      parameters.push_back(&parameter);
  of_blocks.gather_by(layout.blocks);
}

nn::Linear NetworkFrame::first_or_last(nn::Weight& matrix) {
  return biases_ ? nn::Linear(make, matrix, DType::f32) : nn::Linear(matrix, DType::f32);
}

void NetworkFrame::quantize() {
  if (!layout.quantized) fail("a network that was not made to be in 8 bits");
  for (nn::Weight& weight : weights)
    weight.quantize_rows(*layout.quantized, layout.tp);
}

void NetworkFrame::keep_fp8(bool keep) const {
  for (const nn::Weight& weight : weights)
    weight.keep_fp8(keep, layout.fp8);
}

void NetworkFrame::watch(ops::Tape& tape) const {
  for (const nn::Weight& weight : weights)
    weight.watch(tape);
  adapters.watch(tape);
}

Tensor NetworkFrame::enter(ops::Tape& tape, const NetworkBatch& batch,
                           const NetworkPack& pack) const {
  const Tensor patches = ops::patchify(tape, batch.latents.to(device), pack.patches,
                                       config.in_channels, masks(), config.patch_size, compute);
  const Tensor rows = own(tape, patches, pack);
  const auto embed = [this](ops::Tape& inner, const Tensor& x) {
    return std::vector{embed_->forward(inner, x)};
  };
  return kept_of_blocks().offload ? tape.checkpoint(rows, {}, embed)[0] : embed(tape, rows)[0];
}

Tensor NetworkFrame::positions(ops::Tape& tape, const NetworkPack& pack, bool unit) const {
  return own(tape,
             ops::learned_positions(tape, tables_[0]->op(tape), tables_[1]->op(tape),
                                    tables_[2]->op(tape), pack.grids, unit),
             pack);
}

ops::RotaryAngles NetworkFrame::own_angles(const ops::RotaryAngles& all, const NetworkPack& pack) {
  if (!pack.shard) return all;
  ops::Tape silent(false);
  return {ops::take_ranges(silent, all.cosines, pack.shard->sequence),
          ops::take_ranges(silent, all.sines, pack.shard->sequence)};
}

Tensor NetworkFrame::ones(std::int64_t rows) const {
  const Tensor made({rows, config.width()});
  std::ranges::fill(made.floats(), 1.f);
  return made.to(device);
}

Tensor NetworkFrame::own(ops::Tape& tape, const Tensor& of_all, const NetworkPack& pack) const {
  return pack.shard ? ops::take_ranges(tape, of_all, pack.shard->own) : of_all;
}

BlockContext NetworkFrame::context(const ops::Tape& tape, const NetworkPack& pack,
                                   const Tensor& text) const {
  if (fp8.any() && tape.recording()) fail("FP8 is for inference: a tape must not record");
  BlockContext result;
  nn::Pass& pass = result;
  pass.recompute = recompute != nn::Recompute::none && tape.recording();
  if (pack.shard) pass.exchanges = nn::TokenExchanges(config.heads(), layout, *pack.shard);
  result.conditions.rows = pack.rows;
  result.self = {pass, pack.self};
  if (fp8.attention) result.self.fp8 = nn::Fp8Attention::shared;
  result.text = {pass, text.to(device).to(compute), pack.cross};
  return result;
}

Tensor NetworkFrame::leave(ops::Tape& tape, nn::Stream x, const nn::Conditions& conditions,
                           const NetworkPack& pack) const {
  Tensor tokens = project_->forward(tape, last_norm_->of(tape, x, conditions), {});
  if (pack.shard) tokens = ops::place_ranges(tape, tokens, pack.shard->own, pack.tokens);
  return ops::unpatchify(tape, tokens, pack.patches, config.out_channels, config.patch_size);
}

Shape NetworkFrame::stream_shape(const NetworkBatch& batch) const {
  const auto& p = config.patch_size;
  std::vector<ops::TokenGrid> grids;
  for (const NetworkSample& s : batch.samples)
    grids.push_back({s.frames / p[0], s.height / p[1], s.width / p[2]});
  std::int64_t rows = 0;
  for (const ops::RowRange& range : own_rows(config, grids, layout))
    rows += range.count();
  return {rows, config.width()};
}

// The patches of the values, those of other ranks zeroed, and back by the adjoint, which is the
// inverse.
Tensor NetworkFrame::own_part(const Tensor& values, const NetworkBatch& batch) const {
  if (layout.alone()) return values;
  std::vector<ops::PatchGrid> grids;
  std::vector<ops::TokenGrid> token_grids;
  const auto& p = config.patch_size;
  for (const NetworkSample& s : batch.samples) {
    grids.push_back({s.frames, s.height, s.width});
    token_grids.push_back({s.frames / p[0], s.height / p[1], s.width / p[2]});
  }
  const std::vector<ops::RowRange> rows = own_rows(config, token_grids, layout);
  const Tensor own(values.shape(), DType::f32, values.device());
  ops::Tape tape, silent(false);
  tape.replace_gradients();
  tape.watch(values, own);
  const Tensor tokens =
      ops::patchify(tape, values, grids, config.out_channels, 0, config.patch_size, DType::f32);
  const Tensor part = ops::take_ranges(silent, tokens, rows);
  tape.backward(tokens, ops::place_ranges(silent, part, rows, tokens.size(0)));
  return own;
}

}  // namespace vfm::models
