// What ranks of tp send for a step of a network, to the byte: as published for tensor with sequence
// parallelism (Korthikanti et al. 2022), and for uneven parts as the ranges say.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/dit/network.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using dist::Axes;
using dist::Operation;
using models::NetworkConfig;
using nn::Recompute;

namespace {

struct Sent {
  std::int64_t gathered = 0, scattered = 0, others = 0;
};
struct Step {
  Sent forward, backward;
};

// What the ranks of tp send, by rank.
std::vector<Step> sent_by(const NetworkConfig& config, const models::NetworkSample& sample, int tp,
                          int cp, DType compute, Recompute recompute) {
  std::vector<Step> steps(static_cast<std::size_t>(tp * cp));
  models::NetworkBatch batch;
  batch.samples = {sample};
  const std::int64_t places = std::int64_t{sample.frames} * sample.height * sample.width;
  batch.latents = noise_tensor({config.in_channels * places}, 1);
  batch.text = noise_tensor({sample.text_tokens, config.text_embed_dim}, 2);
  dist::thread_worlds(tp * cp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = tp, sizes.cp = cp;
    const dist::Mesh mesh(world, sizes);
    nn::NetworkLayout layout;
    layout.tp = &mesh.group(Axes::tp);
    if (cp > 1) layout.cp = &mesh.group(Axes::cp);
    const auto network = models::make_network(config, 1, compute, Device::cpu, true, layout);
    network->set_recompute(recompute);
    const auto counted = [&] {
      const auto of = [&](Operation operation) {
        return world.traffic().of("tp", operation).bytes;
      };
      const Sent sent{of(Operation::all_gather), of(Operation::reduce_scatter), 0};
      const std::int64_t all = world.traffic().of("tp").bytes;
      world.traffic().reset();
      return Sent{sent.gathered, sent.scattered, all - sent.gathered - sent.scattered};
    };
    counted();
    ops::Tape tape;
    const Tensor output = network->forward(tape, batch);
    Step& step = steps[static_cast<std::size_t>(world.rank())];
    step.forward = counted();
    tape.backward(output, noise_tensor(output.shape(), 3));
    step.backward = counted();
  });
  return steps;
}

}  // namespace

TEST_CASE("ranks of tp send six parts of the rows a block forward, and as many back") {
  NetworkConfig c = tiny_dit();
  c.num_attention_heads = 4;
  const std::int64_t width = c.width(), blocks = c.num_layers;
  for (const auto& [tp, cp] : {std::pair{2, 1}, {4, 1}, {2, 2}})
    for (const DType compute : {DType::f32, DType::bf16}) {
      const auto bytes = static_cast<std::int64_t>(dtype_size(compute));
      const models::NetworkSample even{2, 8, 8, 24.f, 0.2f, 3};
      const std::int64_t tokens = even.tokens(c);
      REQUIRE(tokens % (tp * cp) == 0);
      INFO("tp=" << tp << " cp=" << cp << ", " << dtype_name(compute));
      const std::int64_t three =
          blocks * 3 * (tp - 1) * (tokens / cp / tp) * width * bytes;  // of six
      for (const Recompute recompute : {Recompute::none, Recompute::elementwise})
        for (const Step& step : sent_by(c, even, tp, cp, compute, recompute)) {
          CHECK(step.forward.gathered == three);
          CHECK(step.forward.scattered == three);
          CHECK(step.forward.others == 0);
          // What a product's input was gathered from is not kept: it is gathered again.
          const bool again = recompute == Recompute::elementwise;
          CHECK(step.backward.gathered == (again ? 2 * three : three));
          CHECK(step.backward.scattered == three);
          CHECK(step.backward.others == 0);
        }
    }
}

TEST_CASE("ranks of tp with parts that differ send what their ranges say") {
  NetworkConfig c = tiny_dit();
  c.num_attention_heads = 3;
  const models::NetworkSample odd{1, 4, 10, 0.f, 0.1f, 2};
  const std::int64_t tokens = odd.tokens(c), ranks = 3;
  REQUIRE(tokens % ranks != 0);
  const std::vector<Step> steps = sent_by(c, odd, 3, 1, DType::f32, Recompute::block);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t own = tokens / ranks + (rank < tokens % ranks ? 1 : 0);
    const std::int64_t row = c.num_layers * 3 * c.width() * 4;
    const Step& step = steps[static_cast<std::size_t>(rank)];
    CHECK(step.forward.gathered == row * own * (ranks - 1));
    CHECK(step.forward.scattered == row * (tokens - own));
    // A block is computed again, its exchanges too, and in that each product's input once more.
    CHECK(step.backward.gathered == 3 * row * own * (ranks - 1));
    CHECK(step.backward.scattered == 2 * row * (tokens - own));
  }
}
