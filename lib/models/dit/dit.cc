// SPDX-License-Identifier: Apache-2.0
#include "models/dit/dit.h"

#include <deque>
#include <memory>

#include "models/dit/dit_block.h"
#include "models/dit/framed_forward.h"
#include "models/dit/place_tables.h"
#include "models/dit/stdit_shard.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"

namespace vfm::models {

using nn::Init;
using nn::Weight;
using ops::Tape;

namespace {

struct DitPlaces {
  ops::RotaryAngles angles;
  SpaceTimePacks space_time;  // of the ST-DiT
};

}  // namespace

struct Dit::State : NetworkFrame {
  State(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable, ranks),
        time(make, "time_embed.t_embedder", c.width(), 3 * std::int64_t{c.width()}),
        time_norm(make.table("time_embed.norm.weight", {c.width()}, Init::one)) {
    make_blocks(blocks);
    finish(dit_norm(make, "norm_out", c, 2));
  }

  using Block = DitBlock;
  using Context = DitContext;
  DitContext context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;
  void see_frames_and_pixels(DitContext& context, const NetworkPack& pack,
                             const DitPlaces& at) const;
  DitPlaces tables(const std::vector<ops::TokenGrid>& grids) const;

  const nn::TimeEmbedding time;
  const Weight& time_norm;
  std::deque<DitBlock> blocks;
  mutable PlaceTables<DitPlaces> places;
};

DitPlaces Dit::State::tables(const std::vector<ops::TokenGrid>& grids) const {
  DitPlaces made;
  made.angles = ops::rotary_angles(grids, config.attention_head_dim,
                                   config.own<DitFields>().rope_scale, {.device = device});
  if (config.architecture == &kStdit && !layout.hybrid) {
    made.space_time = space_time_packs(grids, config.num_attention_heads / layout.heads_ranks(),
                                       config.attention_head_dim, device);
    Tape silent(false);
    const ops::RowOrder& order = made.space_time.pixel_order;
    made.space_time.pixel_angles = {ops::reorder_rows(silent, made.angles.cosines, order),
                                    ops::reorder_rows(silent, made.angles.sines, order)};
  }
  return made;
}

DitContext Dit::State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  DitContext result{NetworkFrame::context(tape, pack, text)};
  if (config.own<DitFields>().learnable_positions) result.positions = positions(tape, pack, true);
  const auto here =
      places.of(tape, pack.grids, [this](const auto& grids) { return tables(grids); });
  const Tensor wave = ops::sinusoid(pack.times, config.width());
  result.conditions.shared = time.forward(tape, wave);
  result.conditions.embedding =
      ops::silu(tape, ops::rmsnorm(tape, wave, time_norm.op(tape), kDitNormEpsilon));
  result.self.angles = own_angles(here->angles, pack);
  if (config.architecture == &kStdit) see_frames_and_pixels(result, pack, *here);
  return result;
}

void Dit::State::see_frames_and_pixels(DitContext& context, const NetworkPack& pack,
                                       const DitPlaces& at) const {
  context.frames = context.pixels = context.self;
  // Rows are brought into another order first, in bf16.
  if (fp8.attention) context.frames.fp8 = context.pixels.fp8 = nn::Fp8Attention::alone;
  const nn::TokenExchanges& all = context.exchanges;
  nn::SelfTokens &frames = context.frames, &pixels = context.pixels;
  if (pack.frames) {  // a rank has whole frames, and gets whole pixels
    const PixelMove move(*pack.frames, layout);
    const SpaceTimePacks packs = space_time_packs(*pack.frames, move, at.angles,
                                                  config.num_attention_heads / layout.tp_size(),
                                                  config.attention_head_dim, layout, device);
    const ops::Exchange way = to_pixels(move, layout, device);
    frames.pack = packs.frames;
    pixels.pack = packs.pixels;
    pixels.angles = packs.pixel_angles;
    frames.exchanges = pixels.exchanges = {};
    frames.exchanges.gather = all.gather;
    frames.exchanges.sum = all.sum;
    pixels.exchanges.gather = way;
    pixels.exchanges.sum = ops::adjoint_of(way);
    // A block that is computed again moves its tokens again: once is enough.
    pixels.recompute &= recompute < nn::Recompute::block_but_attention;
    return;
  }
  frames.pack = at.space_time.frames;
  pixels.pack = at.space_time.pixels;
  pixels.order = at.space_time.pixel_order;
  // Rows of the width go to another order more cheaply than queries, keys and values do. Not so in
  // FP8, which is rounded in passing.
  if (all.any_of_cp() || fp8.linear) return;
  pixels.ordered = true;
  pixels.angles = at.space_time.pixel_angles;
  pixels.exchanges.gather = in_pixel_order(all.gather, at.space_time.pixel_order);
}

Dit::Dit(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
         bool trainable, const nn::NetworkLayout& layout)
    : FramedNetwork(std::make_unique<State>(config, seed, compute, device, trainable, layout)) {}

Dit::State& Dit::state() const {
  return static_cast<State&>(*frame_);
}

Tensor Dit::forward(Tape& tape, const NetworkBatch& batch) const {
  return FramedForward<State>(state(), tape, batch).forward();
}

std::unique_ptr<nn::StagedForward> Dit::stages(Tape& tape, const NetworkBatch& batch) const {
  return std::make_unique<FramedForward<State>>(state(), tape, batch);
}

}  // namespace vfm::models
