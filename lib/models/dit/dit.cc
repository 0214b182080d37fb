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
        bool trainable, const NetworkLayout& ranks)
      : NetworkFrame(c, seed, compute_dtype, where, trainable, c.learnable_positions, ranks) {
    const std::int64_t d = c.width();
    time_1 = &make.conditioning("time_embed.t_embedder.linear_1.weight", d, d, Init::normal);
    time_2 = &make.conditioning("time_embed.t_embedder.linear_2.weight", 3 * d, d, Init::normal);
    time_norm = &make.table("time_embed.norm.weight", {d}, Init::one);
    for (int i = 0; i < c.num_layers; ++i)
      blocks.emplace_back(make, "transformer_blocks." + std::to_string(i) + ".", c, layout);
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
  made->angles =
      ops::rotary_angles(grids, config.attention_head_dim, config.rope_scale, {.device = device});
  if (config.type == NetworkType::stdit)
    made->space_time = space_time_packs(grids, config.num_attention_heads / layout.heads_ranks(),
                                        config.attention_head_dim, device);
  const std::lock_guard lock(mutex);
  if (keep) kept = made;
  return made;
}

DitContext Dit::State::context(Tape& tape, const NetworkPack& pack, const Tensor& text) const {
  DitContext result;
  result.self = pack.self;
  result.cross = pack.cross;
  result.rows = pack.rows;
  if (config.learnable_positions) result.positions = positions(tape, pack, true);
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
  result.recompute = recompute != Recompute::none && tape.recording();
  result.fp8_attention = fp8.attention;
  return result;
}

// What blocks exchange with the other ranks, and this rank's part of the angles.
void Dit::State::share(const NetworkPack& pack, DitContext& context) const {
  context.exchanges = TokenExchanges(config, layout, *pack.shard);
  Tape silent(false);
  for (Tensor* angles : {&context.angles.cosines, &context.angles.sines})
    *angles = ops::take_ranges(silent, *angles, pack.shard->sequence);
}

Dit::Dit(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
         bool trainable, const NetworkLayout& layout)
    : FramedNetwork(std::make_unique<State>(config, seed, compute, device, trainable, layout)) {}

Dit::State& Dit::state() const {
  return static_cast<State&>(*frame_);
}

void Dit::set_inference_fp8(Fp8Parts parts) {
  check_fp8(config(), state().compute, parts);
  if (parts.any() && !state().layout.alone()) fail_usage("ranks that share a network have no FP8");
  for (const DitBlock& block : state().blocks)
    block.keep_fp8(parts.linear);
  state().fp8 = parts;
}

Tensor Dit::forward(Tape& tape, const NetworkBatch& batch) const {
  const State& s = state();
  const NetworkConfig& c = s.config;
  batch.check(c);
  if (s.fp8.any() && tape.recording()) fail("FP8 is for inference: a tape must not record");
  const NetworkPack pack(c, batch, s.device, s.layout);
  DitStream stream;
  stream.x = s.enter(tape, batch, pack);
  const DitContext context = s.context(tape, pack, batch.text);
  for (const DitBlock& block : s.blocks) {
    if (s.recompute < Recompute::block_but_attention) {
      stream = block.forward(tape, stream, context);
      continue;
    }
    // What is kept between blocks is the sum alone.
    const auto run = [&block, context](Tape& inner, const Tensor& x) {
      const DitStream result = block.forward(inner, {x, Tensor(), Tensor()}, context);
      return std::vector<Tensor>{block.merge(inner, result, context)};
    };
    stream.x = tape.checkpoint(stream.x, {context.positions, context.embedding, context.shared},
                               run, s.kept_of_blocks())[0];
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
  return s.leave(tape, ops::gated_residual_layernorm_modulate(tape, last).normed, pack);
}

}  // namespace vfm::models
