// What ranks of a hybrid send for a block in space and time: two all-to-alls forward, and backward
// as many and those that recompute runs again, to the byte of the plan's ranges.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/dit/network.h"
#include "models/dit/network_pack.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using dist::Axes;
using dist::Operation;
using models::NetworkConfig;
using nn::CpKind;
using nn::Recompute;

namespace {

struct HybridWay {
  int tp = 1, cp = 1;
  CpKind kind = CpKind::ring;  // whose full attention has no all-to-all
  bool hybrid = true;
  DType compute = DType::f32;
  Recompute recompute = Recompute::none;
  int heads = 1;  // of cp, for all_to_all_ring
};

struct HybridStep {
  dist::Traffic::Count forward, backward;    // all-to-alls of cp
  std::int64_t ring = 0, ring_backward = 0;  // bytes that go round
};

models::NetworkBatch hybrid_batch(const NetworkConfig& c,
                                  std::vector<models::NetworkSample> samples) {
  models::NetworkBatch batch;
  std::int64_t values = 0, text = 0;
  for (const models::NetworkSample& s : samples) {
    values += std::int64_t{s.frames} * s.height * s.width;
    text += s.text_tokens;
  }
  batch.samples = std::move(samples);
  batch.latents = noise_tensor({c.in_channels * values}, 1);
  batch.text = noise_tensor({text, c.text_embed_dim}, 2);
  return batch;
}

// By rank.
std::vector<HybridStep> sent_in_hybrid(const NetworkConfig& config,
                                       const models::NetworkBatch& batch, const HybridWay& way) {
  std::vector<HybridStep> steps(static_cast<std::size_t>(way.tp * way.cp));
  dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = way.tp, sizes.cp = way.cp, sizes.cp_kind = way.kind, sizes.cp_heads = way.heads;
    const dist::Mesh mesh(world, sizes);
    nn::NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), way.kind, way.hybrid};
    if (way.kind == CpKind::all_to_all_ring) {
      layout.cp_heads = &mesh.group(Axes::cp_heads);
      layout.cp_ring = &mesh.group(Axes::cp_ring);
    }
    const auto sent = [&](Operation operation) {
      dist::Traffic::Count all;
      for (const char* axis : {"cp", "cp_heads", "cp_ring"}) {
        all.calls += world.traffic().of(axis, operation).calls;
        all.bytes += world.traffic().of(axis, operation).bytes;
      }
      return all;
    };
    const auto network = models::make_network(config, 1, way.compute, Device::cpu, true, layout);
    network->set_recompute(way.recompute);
    ops::Tape tape;
    world.traffic().reset();
    const Tensor output = network->forward(tape, batch);
    HybridStep& step = steps[static_cast<std::size_t>(world.rank())];
    step.forward = sent(Operation::all_to_all);
    step.ring = sent(Operation::exchange).bytes;
    world.traffic().reset();
    tape.backward(output, noise_tensor(output.shape(), 3));
    step.backward = sent(Operation::all_to_all);
    step.ring_backward = sent(Operation::exchange).bytes;
  });
  return steps;
}

NetworkConfig two_blocks() {
  NetworkConfig c = tiny_stdit();
  c.max_size = {8, 8, 8};
  c.num_attention_heads = 8;
  c.num_layers = 2;
  return c;
}

}  // namespace

TEST_CASE("a hybrid's block has two all-to-alls forward, and two to four backward", "[long]") {
  const NetworkConfig c = two_blocks();
  // 4 frames of 4 x 4 tokens.
  const models::NetworkBatch batch = hybrid_batch(c, {{4, 8, 8, 24.f, 0.2f, 3}});
  const std::int64_t S = 64, D = c.width(), blocks = c.num_layers;
  for (const auto& [tp, cp] : {std::pair{1, 2}, {1, 4}, {2, 2}, {4, 2}, {2, 4}})
    for (const auto& [recompute, back] :
         {std::pair{Recompute::none, 2}, {Recompute::elementwise, 3}, {Recompute::block, 4}})
      for (const DType compute : {DType::f32, DType::bf16}) {
        INFO("tp=" << tp << " cp=" << cp << ", recompute " << nn::recompute_name(recompute));
        const auto bytes = static_cast<std::int64_t>(dtype_size(compute));
        const std::int64_t each = (cp - 1) * S / cp * D / tp * bytes / cp;
        for (const HybridStep& step : sent_in_hybrid(
                 c, batch, {.tp = tp, .cp = cp, .compute = compute, .recompute = recompute})) {
          CHECK(step.forward.calls == 2 * blocks);
          CHECK(step.forward.bytes == 2 * blocks * each);
          CHECK(step.backward.calls == back * blocks);
          CHECK(step.backward.bytes == back * blocks * each);
        }
      }
}

TEST_CASE("ranks send for the three attentions what RESULTS.md's table says", "[long]") {
  const NetworkConfig c = two_blocks();
  const models::NetworkBatch batch = hybrid_batch(c, {{8, 8, 4, 24.f, 0.2f, 3}});
  const std::int64_t S = 64, D = c.width(), blocks = c.num_layers, b = 2;
  struct TableRow {
    int cp;
    CpKind kind;
    int heads;
    bool hybrid;
    double changed, ring;  // in rows of this rank's tokens
  };
  const CpKind all = CpKind::all_to_all, ring = CpKind::ring, both = CpKind::all_to_all_ring;
  for (const TableRow& row : {TableRow{2, all, 1, false, 6, 0},
                              {2, ring, 1, true, 1, 2},
                              {2, all, 1, true, 3, 0},
                              {4, all, 1, false, 9, 0},
                              {4, ring, 1, true, 1.5, 6},
                              {4, all, 1, true, 4.5, 0},
                              {4, both, 2, true, 3.5, 2},
                              {8, all, 1, false, 10.5, 0},
                              {8, ring, 1, true, 1.75, 14},
                              {8, all, 1, true, 5.25, 0},
                              {8, both, 4, true, 4.75, 2}}) {
    INFO("cp=" << row.cp << ' ' << nn::cp_kind_name(row.kind) << (row.hybrid ? " hybrid" : ""));
    const auto unit = static_cast<double>(blocks * S / row.cp * D * b);
    for (const HybridStep& step : sent_in_hybrid(c, batch,
                                                 {.cp = row.cp,
                                                 .kind = row.kind,
                                                 .hybrid = row.hybrid,
                                                 .compute = DType::bf16,
                                                 .heads = row.heads})) {
      CHECK(static_cast<double>(step.forward.bytes) == row.changed * unit);
      CHECK(static_cast<double>(step.backward.bytes) == row.changed * unit);
      CHECK(static_cast<double>(step.ring) == row.ring * unit);
      CHECK(static_cast<double>(step.ring_backward) == 3 * row.ring * unit);
    }
  }
}

TEST_CASE("uneven parts of a hybrid send what the plan's ranges say") {
  const NetworkConfig c = two_blocks();
  const std::vector<models::NetworkSample> mixed = {{3, 4, 6, 12.f, 0.4f, 3},
                                                    {1, 8, 4, 0.f, -0.3f, 1},
                                                    {2, 2, 2, 30.f, 0.1f, 5},
                                                    {1, 4, 4, 0.f, 0.3f, 1}};
  const std::vector<ops::TokenGrid> grids = {{3, 2, 3}, {1, 4, 2}, {2, 1, 1}, {1, 2, 2}};
  const models::NetworkBatch batch = hybrid_batch(c, mixed);
  const std::int64_t blocks = c.num_layers, row = c.width() * 4;
  for (const int cp : {2, 3, 5})
    for (const Recompute recompute : {Recompute::none, Recompute::elementwise, Recompute::block}) {
      INFO("cp=" << cp << ", recompute " << nn::recompute_name(recompute));
      const nn::FramePlan plan(grids, cp, models::frame_work(c, true));
      const std::vector<HybridStep> steps =
          sent_in_hybrid(c, batch, {.cp = cp, .recompute = recompute});
      std::int64_t all = 0;
      for (int rank = 0; rank < cp; ++rank) {
        std::int64_t out = 0, back = 0;  // rows to pixels, and from them
        for (int other = 0; other < cp; ++other) {
          if (other == rank) continue;
          out += plan.moved(rank, other);
          back += plan.moved(other, rank);
        }
        all += out;
        const HybridStep& step = steps[static_cast<std::size_t>(rank)];
        const std::int64_t again = recompute == Recompute::none          ? 0
                                   : recompute == Recompute::elementwise ? out
                                                                         : out + back;
        CHECK(step.forward.bytes == blocks * (out + back) * row);
        CHECK(step.backward.bytes == blocks * (out + back + again) * row);
      }
      if (cp > 2) CHECK(all > 0);  // else no sample is on two ranks
    }
}
