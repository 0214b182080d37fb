// Shape letters: S tokens of the pack, D width, H heads, K head dim, L text tokens of the pack, E
// text width, R samples of the pack.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/dit.h"

#include <deque>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "models/dit/dit_block.h"
#include "models/dit/fp8.h"
#include "models/dit/network_frame.h"
#include "models/dit/stdit_shard.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/silu.h"
#include "tensor/gpu_graph.h"

namespace vfm::models {

using nn::Init;
using nn::Weight;
using ops::Tape;

namespace {

// What follows from where tokens are, and from nothing else.
struct PlaceTables {
  std::vector<ops::TokenGrid> grids;
  ops::RotaryAngles angles;
  SpaceTimePacks space_time;  // of the ST-DiT
};

}  // namespace

struct Dit::State : NetworkFrame {
  State(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable,
                     c.own<DitFields>().learnable_positions, ranks) {
    const std::int64_t d = c.width();
    time_1 = &make.conditioning("time_embed.t_embedder.linear_1.weight", d, d, Init::normal);
    time_2 = &make.conditioning("time_embed.t_embedder.linear_2.weight", 3 * d, d, Init::normal);
    time_norm = &make.table("time_embed.norm.weight", {d}, Init::one);
    make.options.blocks = layout.blocks;
    for (int i = 0; i < c.num_layers; ++i) {
      begin_block(i);
      blocks.emplace_back(make, "transformer_blocks." + std::to_string(i) + ".", c, layout);
    }
    make.options.blocks = nullptr;
    begin_head();
    norm_out = std::make_unique<AdaLn>(make, "norm_out", c, 2);
    finish();
  }

  DitContext context(Tape& tape, const NetworkPack& pack, const Tensor& text) const;
  void share(const NetworkPack& pack, DitContext& context) const;
  std::shared_ptr<const PlaceTables> tables(const std::vector<ops::TokenGrid>& grids,
                                            bool keep) const;

  Fp8Parts fp8;
  const Weight *time_1 = nullptr, *time_2 = nullptr, *time_norm = nullptr;
  std::deque<DitBlock> blocks;
  std::unique_ptr<AdaLn> norm_out;
  mutable std::mutex mutex;
  mutable std::shared_ptr<const PlaceTables> kept;  // of the last call that keeps them
};

// The host works tens of milliseconds on those of a large clip, which each step of sampling asks
// for again.
std::shared_ptr<const PlaceTables> Dit::State::tables(const std::vector<ops::TokenGrid>& grids,
                                                      bool keep) const {
  if (keep) {
    const std::lock_guard lock(mutex);
    if (kept && kept->grids == grids) return kept;
    kept = nullptr;
  }
  auto made = std::make_shared<PlaceTables>();
  made->grids = grids;
  made->angles = ops::rotary_angles(grids, config.attention_head_dim,
                                    config.own<DitFields>().rope_scale, {.device = device});
  if (config.architecture == &kStdit && !layout.hybrid) {
    made->space_time = space_time_packs(grids, config.num_attention_heads / layout.heads_ranks(),
                                        config.attention_head_dim, device);
    Tape silent(false);
    const ops::RowOrder& order = made->space_time.pixel_order;
    made->space_time.pixel_angles = {ops::reorder_rows(silent, made->angles.cosines, order),
                                     ops::reorder_rows(silent, made->angles.sines, order)};
  }
  const std::lock_guard lock(mutex);
  if (keep) kept = made;
  return made;
}

DitContext Dit::State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  DitContext result;
  result.self = pack.self;
  result.cross = pack.cross;
  result.rows = pack.rows;
  if (config.own<DitFields>().learnable_positions) result.positions = positions(tape, pack, true);
  // What is recorded keeps its own (tensor/gpu_graph.h), and training has other sizes each time.
  const auto places = tables(pack.grids, !tape.recording() && !GpuGraph::recording());
  result.angles = places->angles;
  result.space_time = places->space_time;
  const Tensor wave = ops::sinusoid(pack.times, config.width());
  const Tensor hidden = ops::silu(tape, time_1->multiply(tape, wave));
  result.shared = time_2->multiply(tape, hidden);
  result.embedding =
      ops::silu(tape, ops::rmsnorm(tape, wave, time_norm->op(tape), kDitNormEpsilon));
  result.text = text.to(device).to(compute);
  if (pack.shard) share(pack, result);
  if (config.architecture == &kStdit && !pack.frames && !result.exchanges.any_of_cp())
    result.to_pixels = in_pixel_order(result.exchanges.gather, places->space_time.pixel_order);
  result.recompute = recompute != nn::Recompute::none && tape.recording();
  // A block that is computed again moves its tokens again: once is enough.
  result.keep_moved = recompute >= nn::Recompute::block_but_attention && pack.frames;
  result.fp8_attention = fp8.attention;
  return result;
}

// What blocks exchange with the other ranks, and this rank's part of the angles.
void Dit::State::share(const NetworkPack& pack, DitContext& context) const {
  context.exchanges = nn::TokenExchanges(config.heads(), layout, *pack.shard);
  if (pack.frames) {
    const PixelMove move(*pack.frames, layout);
    context.space_time = space_time_packs(*pack.frames, move, context.angles,
                                          config.num_attention_heads / layout.tp_size(),
                                          config.attention_head_dim, layout, device);
    context.to_pixels = to_pixels(move, layout, device);
    context.from_pixels = ops::adjoint_of(context.to_pixels);
  }
  Tape silent(false);
  for (Tensor* angles : {&context.angles.cosines, &context.angles.sines})
    *angles = ops::take_ranges(silent, *angles, pack.shard->sequence);
}

Dit::Dit(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
         bool trainable, const nn::NetworkLayout& layout)
    : FramedNetwork(std::make_unique<State>(config, seed, compute, device, trainable, layout)) {}

Dit::State& Dit::state() const {
  return static_cast<State&>(*frame_);
}

void Dit::set_inference_fp8(Fp8Parts parts) {
  check_fp8(config(), state().compute, parts);
  for (const DitBlock& block : state().blocks)
    block.keep_fp8(parts.linear, state().layout.fp8);
  state().fp8 = parts;
}

class Dit::Stages final : public nn::StackForward<DitBlock, DitContext> {
 public:
  Stages(const State& state, Tape& tape, const NetworkBatch& batch)
      : StackForward({state.blocks, state.of_blocks, state.recompute, state.offload}, tape),
        s_(state),
        batch_(batch),
        pack_(checked_pack()) {
    s_.watch(tape_);
    context_ = s_.context(tape_, pack_, batch_.text);
    read_ = {context_.positions, context_.embedding, context_.shared};
  }

 private:
  Tensor start() override { return s_.enter(tape_, batch_, pack_); }
  Tensor finish(const nn::Stream& stream) override {
    ops::ModulateInput last =
        nn::pending(stream, context_.rows, s_.norm_out->forward(tape_, context_));
    last.epsilon = kDitNormEpsilon;
    last.out = s_.compute;
    return s_.leave(tape_, ops::gated_residual_layernorm_modulate(tape_, last).normed, pack_);
  }
  NetworkPack checked_pack() const {
    batch_.check(s_.config);
    if (s_.fp8.any() && tape_.recording()) fail("FP8 is for inference: a tape must not record");
    return {s_.config, batch_, s_.device, s_.layout};
  }

  const State& s_;
  const NetworkBatch& batch_;
  const NetworkPack pack_;
};

Tensor Dit::forward(Tape& tape, const NetworkBatch& batch) const {
  return Stages(state(), tape, batch).forward();
}

std::unique_ptr<nn::StagedForward> Dit::stages(Tape& tape, const NetworkBatch& batch) const {
  return std::make_unique<Stages>(state(), tape, batch);
}

}  // namespace vfm::models
