// Costs, plans and pipelines of a network whose blocks are not alike, and whose stages hand on
// several tensors.
// SPDX-License-Identifier: Apache-2.0
#include "skip_network.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/one_thread.h"
#include "dist/threads.h"
#include "dist/world.h"
#include "models/dit/lora.h"
#include "tensor/allocator.h"
#include "train/check/check_parallel.h"
#include "train/cost/in_flight.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/plan/plan.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"
#include "train/step/chunks.h"
#include "train/step/parallel.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;
using nn::Recompute;

namespace {

constexpr double kTokens = 256, kWidth = 64, kPixels = 4 * 4;  // of a patch: numbers in and out

/// Of networks with skip connections on made-up latents: a pack has 256 tokens of width 64.
struct SkipCase {
  std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 16, 16}}, .channels = 4, .text_tokens = 8, .text_width = 24});
  Recipe recipe;

  explicit SkipCase(const std::string& more = "{}", int blocks = 8) {
    auto settings = parse_yaml(
        "model: {num_attention_heads: 2, attention_head_dim: 32, max_size: [4, 16, 16], "
        "concat_padding_mask: false, recompute: none, num_layers: " +
            std::to_string(blocks) +
            "}\ndata: {tokens: 256, packs: 8, micro_packs: 1}\nema: {mode: off}\n"
            "diffusion: {text_dropout: 0}\n",
        "recipe");
    for (const auto& setting : parse_yaml(more, "more"))
      settings.push_back(setting);
    recipe = make_recipe(settings);
    recipe.model.dit.architecture = &kSkips;
    data->fit(recipe);
  }
  std::vector<data::Entry> pack() const { return fullest_pack(recipe, *data); }
};

/// What the tensors of a run on threads take at most while two steps are made.
double taken_by(const Recipe& recipe, const Dataset& data, int ranks) {
  release_cached_memory();
  const auto before = static_cast<double>(cpu_memory().current);
  dist::thread_worlds(ranks, [&](dist::World& world) {
    const OneThread one_thread;
    Trainer trainer(recipe, data, world);
    world.barrier();
    if (world.rank() == 0) reset_memory_peak();
    world.barrier();
    for (int i = 0; i < 2; ++i)
      trainer.train_step();
    world.barrier();
  });
  return static_cast<double>(cpu_memory().peak) - before;
}

/// Operations of the products of a step of one pack: of the blocks and of what is around them.
double flops_of_blocks(int first_half, int second_half) {
  const double square = 3 * 2 * kTokens * kWidth * kWidth;
  return square * (4 * first_half + 6 * second_half);
}

}  // namespace

TEST_CASE("skip connections: a step takes the memory that its dry run tells") {
  for (const Recompute recompute : kind_of("dit").recomputes()) {
    SkipCase one("data.packs: 2\n");
    one.recipe.model.recompute = nn::recompute_name(recompute);
    MemoryNeed need = memory_need(one.recipe, 1, recompute, Device::cpu, one.pack());
    need.host = 0;
    const double taken = taken_by(one.recipe, *one.data, 1);
    INFO(one.recipe.model.recompute << ": " << need.total() << " of " << taken);
    // A thread reads ahead. On a busy machine it may not have read the packs of two steps yet.
    CHECK(std::abs(need.total() - taken) <= 2e-3 * taken + 4 * sizeof(float) * kTokens * kPixels);
  }
}

TEST_CASE("skip connections: the stages of a pipeline take what their dry runs tell") {
  for (const Recompute recompute : {Recompute::none, Recompute::block}) {
    SkipCase one("parallel: {pp: 2}\n");
    one.recipe.model.recompute = nn::recompute_name(recompute);
    double need = 0;
    for (const MemoryNeed& stage :
         memory_of_stages(one.recipe, 2, recompute, Device::cpu, one.pack()))
      need += stage.total() - stage.host;
    const double taken = taken_by(one.recipe, *one.data, 2);
    INFO(one.recipe.model.recompute << ": " << need << " of " << taken);
    // Threads need not be at their peaks together: on a busy machine it was 0.86.
    CHECK(taken <= 1.02 * need);
    CHECK(taken >= 0.8 * need);
  }
}

TEST_CASE("skip connections: the work of a step is the sum over its blocks") {
  for (const int blocks : {2, 8, 14}) {
    SkipCase one("data.packs: 1", blocks);
    const StepWork work = step_work(one.recipe, 1, Recompute::none, Device::cpu, one.pack());
    double products = 0;
    for (const auto& [name, kernel] : work_by_name(work.packs))
      if (kernel.kind == WorkKind::products) products += kernel.flops;
    // Nothing flows back to the patches.
    const double around = 2 * kTokens * kWidth * kPixels * (2 + 3);
    CHECK(products == Approx(flops_of_blocks(blocks / 2, blocks / 2) + around));
    const models::PartWork parts = kind_of("dit").part_work(one.recipe);
    REQUIRE(parts.blocks.size() == static_cast<std::size_t>(blocks));
    CHECK(std::accumulate(parts.blocks.begin(), parts.blocks.end(), 0.0) + parts.embed +
              parts.head ==
          Approx(SampleFlops(one.recipe).of(one.pack().front())).epsilon(0.01));
    CHECK(parts.blocks.front() >= flops_of_blocks(1, 0));
    CHECK(parts.blocks.back() >= flops_of_blocks(0, 1));
    CHECK(parts.weights.front() == 4 * kWidth * kWidth);
    CHECK(parts.weights.back() == 6 * kWidth * kWidth);
  }
}

TEST_CASE("skip connections: stages have about as much work, and hand on what is open") {
  const SkipCase one("parallel: {pp: 4}\n", 12);
  const std::vector<int> stages = kind_of("dit").balanced_stages(one.recipe);
  REQUIRE(stages.size() == 4);
  CHECK(std::accumulate(stages.begin(), stages.end(), 0) == 12);
  // Blocks of 4 products, and of 6 from the seventh on: three of these are in one stage at least.
  CHECK(stages == std::vector<int>{4, 3, 3, 2});
  const Recipe recipe = one.recipe;
  int before = 0;
  for (int stage = 0; stage < 4; ++stage) {
    const InFlight there = in_flight(recipe, 4, Recompute::none, Device::cpu, one.pack(), stage);
    before += stages[static_cast<std::size_t>(stage)];
    REQUIRE(there.chunks.size() == 1);
    const SentMessages& sent = there.chunks[0].sent;
    CHECK(sent.calls == (stage == 3 ? 0 : 1 + std::min(before, 12 - before)));
    CHECK(sent.bytes == sent.calls * kTokens * kWidth * 4);
  }
  // Each sends the stream, and gradients of what it got.
  const StepWork work = step_work(recipe, 4, Recompute::none, Device::cpu, one.pack(), 1);
  CHECK(work.messages.at({"pp", dist::Operation::send}).calls == 8 * ((1 + 5) + (1 + 4)));
}

TEST_CASE("skip connections: a recomputed block keeps its input once, though it is a skip too") {
  const auto kept = [](int first, bool offload) {
    const SkipCase one(
        "parallel: {pp: 2, stages: [" + std::to_string(first) + ", " + std::to_string(12 - first) +
            "]}\nmodel: {recompute: block, offload: " + (offload ? "true}" : "false}"),
        12);
    return in_flight(one.recipe, 2, Recompute::block, Device::cuda, one.pack(), 0).chunks[0];
  };
  constexpr double kStream = kTokens * kWidth * 4;
  CHECK(kept(3, false).kept - kept(2, false).kept == kStream);
  // Of the second half the skip is there already.
  CHECK(kept(8, false).kept - kept(7, false).kept == kStream);
  // An input that later blocks read stays where they read it; others wait on the host.
  CHECK(kept(3, true).pinned == kept(2, true).pinned);
  CHECK(kept(9, true).pinned - kept(8, true).pinned == kStream);
}

TEST_CASE("skip connections: few blocks stand for all in a plan", "[long]") {
  const SkipCase one("model: {num_attention_heads: 8, compute: bf16}\n", 16);
  const models::Gpu& gpu = models::find_gpu("h100");
  const Workload load = measure(one.recipe, *one.data);
  const LayoutCost costs(one.recipe, load.pack, gpu, 8, {});
  using enum ShardKind;
  Candidate offloaded({.pp = 4}, Recompute::block);
  offloaded.offload = true;
  for (const Candidate& of :
       {Candidate(), Candidate({.dp = 4}), Candidate({.dp = 4}, Recompute::block),
        Candidate({.dp = 4, .shard = optimizer}), Candidate({.dp = 4, .shard = full}),
        Candidate({.pp = 2}), Candidate({.dp = 2, .pp = 3}), Candidate({.pp = 2, .vpp = 2}),
        Candidate({.pp = 4}, Recompute::block), offloaded,
        Candidate({.dp = 2, .pp = 2, .shard = full}),
        // The ranks that share samples share the matrices, too.
        Candidate({.cp = 2, .pp = 2, .shard = full}), Candidate({.tp = 2, .pp = 2, .shard = full}),
        Candidate({.dp = 2, .pp = 4, .shard = optimizer})}) {
    INFO(of.layout() << " " << nn::recompute_name(of.recompute));
    const Costed few = costs.of(of), whole = costs.of(of, true);
    CHECK(whole.need.total() ==
          memory_need(of.of(one.recipe), of.gpus(), of.recompute, Device::cuda, load.pack).total());
    CHECK(few.need.total() == Approx(whole.need.total()).epsilon(of.pp > 1 ? 0.03 : 0.01));
    CHECK(few.need.pinned == Approx(whole.need.pinned).epsilon(0.05));
    CHECK(few.time.total() == Approx(whole.time.total()).epsilon(0.015));
  }
  const Plan plan = make_plan(one.recipe, load, {8, 8, &gpu});
  CHECK(!plan.best.empty());
  CHECK(plan.pipeline);
  CHECK(plan.whole_differs < 0.03);
}

TEST_CASE("skip connections: the two networks that stand for one have its kinds of blocks") {
  const auto few = [](int blocks) {
    const SkipCase one("{}", blocks);
    const FewBlocks two = StageCuts(one.recipe).few(2);
    return std::pair(two.less, two.more);
  };
  CHECK(few(2) == std::pair(2, 4));
  CHECK(few(4) == std::pair(4, 6));
  CHECK(few(28) == std::pair(4, 6));
}

TEST_CASE("skip connections: adapters are on the matrices that each block has") {
  const SkipCase one("{}", 4);
  std::vector<std::string> modules;
  for (const models::NetworkMatrix& matrix : models::network_matrices(one.recipe.model.dit))
    modules.push_back(matrix.module);
  CHECK(modules ==
        std::vector<std::string>{"patch_embed.proj", "proj_out", "transformer_blocks.0.up",
                                 "transformer_blocks.0.down", "transformer_blocks.1.up",
                                 "transformer_blocks.1.down", "transformer_blocks.2.join.x",
                                 "transformer_blocks.2.join.skip", "transformer_blocks.2.up",
                                 "transformer_blocks.2.down", "transformer_blocks.3.join.x",
                                 "transformer_blocks.3.join.skip", "transformer_blocks.3.up",
                                 "transformer_blocks.3.down"});
}

TEST_CASE("a network that hands on other tensors than it says is refused, where ranks would wait") {
  const SkipCase one("parallel: {pp: 2}\n", 4);
  const auto world = dist::counted_world(0, 2);
  const Parallel parallel(one.recipe, *world);
  const auto network = models::make_network(one.recipe.model.dit, 0, DType::f32, Device::meta, true,
                                            parallel.network());
  models::NetworkBatch batch;
  batch.samples = {{4, 16, 16}};
  batch.latents = Tensor({4 * 4 * 16 * 16}, DType::f32, Device::meta);
  batch.text = Tensor({1, one.recipe.model.dit.text_embed_dim}, DType::f32, Device::meta);
  const auto says = [&](std::size_t tensors) {
    StagedBatch staged;
    staged.stages = [&](ops::Tape& tape) { return network->stages(tape, batch); };
    staged.streams = [&network, &batch, tensors](std::size_t block) {
      std::vector<Shape> shapes = network->stream_shapes(batch, block);
      shapes.resize(tensors);
      return shapes;
    };
    staged.device = Device::meta, staged.blocks = 4;
    NetworkChunks(parallel.network(), staged).forward(0, {});
  };
  CHECK_NOTHROW(says(3));
  CHECK_THROWS_WITH(says(1),
                    Catch::Contains("block 1 hands on 3 tensors, and Architecture::skips"));
}

TEST_CASE("skip connections: two stages train as one rank does") {
  for (const auto& [more, adapters] : {std::pair{"parallel: {pp: 2}", 0},
                                       {"parallel: {pp: 2, vpp: 2}\nmodel: {recompute: block}", 0},
                                       {"parallel: {pp: 3, stages: [1, 2, 1]}", 0},
                                       {"parallel: {pp: 2, shard: full}", 0},
                                       {"parallel: {pp: 2}", 2}}) {
    INFO(more << ", rank " << adapters);
    SkipCase one(std::string("data.packs: 4\n") + more, 4);
    RunOptions options;
    options.recipe = one.recipe;
    options.recipe.lora.rank = adapters;
    const int ranks =
        one.recipe.parallel.pp * (one.recipe.parallel.shard == ShardKind::full ? 2 : 1);
    ParallelCheck check;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      ParallelCheck own = check_parallel(options, *one.data, world);
      if (world.rank() == 0) check = std::move(own);
    });
    INFO(check.words());
    CHECK(check.passed);
  }
}
