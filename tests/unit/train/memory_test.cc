// What is told of a run before it begins, against a run.
// SPDX-License-Identifier: Apache-2.0
#include "train/cost/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/one_thread.h"
#include "data/packing.h"
#include "dist/threads.h"
#include "models/cosmos/autoencoder.h"
#include "support/usage_error.h"
#include "tensor/allocator.h"
#include "tensor/meta.h"
#include "train/cost/less_memory.h"
#include "train/cost/step_work.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/step/trainer.h"
#include "train/tokenizer/clips.h"

using namespace vfm;
using namespace vfm::train;
using nn::Recompute;

namespace {

constexpr const char* kNetwork =
    "model: {num_attention_heads: 4, attention_head_dim: 32, num_layers: 3, mlp_ratio: 4}\n"
    "data: {tokens: 128}\n"
    "train: {steps: 10}\n";
constexpr const char* kTokenizer =
    "model: {type: tokenizer, latent_channels: 6, encoder_block_out_channels: [8, 8, 16, 32], "
    "decode_block_out_channels: [8, 8, 16, 32], num_layers: 1, patch_size: 2, "
    "spatial_compression_ratio: 4, temporal_compression_ratio: 4}\n"
    "data: {tokens: 256}\n";

Recipe recipe_of(const char* text, const std::string& more) {
  auto settings = parse_yaml(text, "recipe");
  for (const auto& setting : parse_yaml(more, "more"))
    settings.push_back(setting);
  return make_recipe(settings);
}

/// What a run's tensors take at most, and what was told of them.
void check_run(Recipe recipe, const Dataset& data) {
  data.fit(recipe);
  for (const Recompute recompute : kind_of(recipe.model.type).recomputes()) {
    recipe.model.recompute = nn::recompute_name(recompute);
    MemoryNeed need = memory_need(recipe, 1, recompute, Device::cpu, fullest_pack(recipe, data));
    release_cached_memory();
    const double before = static_cast<double>(cpu_memory().current);
    {
      const std::unique_ptr<dist::World> alone = dist::self_world();
      Trainer trainer(recipe, data, *alone);
      reset_memory_peak();
      for (int i = 0; i < 2; ++i)
        trainer.train_step();
    }
    const double taken = static_cast<double>(cpu_memory().peak) - before;
    need.host = 0;
    INFO(recipe.model.type << " " << recipe.model.recompute << " " << recipe.model.compute << ": "
                           << need.total() << " of " << taken);
    CHECK(need.total() == Approx(taken).epsilon(0.03));
  }
}

/// The same of ranks that are threads: they take together what is told of each.
void check_ranks(Recipe recipe, const Dataset& data, int tp, int cp, int dp) {
  recipe.parallel.tp = tp, recipe.parallel.cp = cp;
  recipe.data.packs = dp;
  data.fit(recipe);
  const int ranks = tp * cp * dp;
  for (const Recompute recompute : {Recompute::none, Recompute::block}) {
    recipe.model.recompute = nn::recompute_name(recompute);
    MemoryNeed need =
        memory_need(recipe, ranks, recompute, Device::cpu, fullest_pack(recipe, data));
    need.host = 0;
    release_cached_memory();
    const double before = static_cast<double>(cpu_memory().current);
    double lasting = 0;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      const OneThread one_thread;
      Trainer trainer(recipe, data, world);
      world.barrier();
      if (world.rank() == 0) lasting = static_cast<double>(cpu_memory().current) - before;
      if (world.rank() == 0) reset_memory_peak();
      world.barrier();
      for (int i = 0; i < 2; ++i)
        trainer.train_step();
      world.barrier();
    });
    const double taken = static_cast<double>(cpu_memory().peak) - before;
    INFO("tp=" << tp << " cp=" << cp << " dp=" << dp << " " << recipe.model.recompute << " "
               << recipe.model.type << ": " << ranks * need.total() << " of " << taken
               << ", activations " << ranks * need.activations);
    CHECK(ranks * (need.total() - need.activations) == Approx(lasting).epsilon(0.03));
    // Threads need not be at their peaks together; tests/cli/train/train-ranks.bats measures processes.
    CHECK(taken <= 1.05 * ranks * need.total());
    CHECK(taken >= 0.85 * ranks * need.total());
  }
}

/// That the first rank sends so many bytes in a step, by axis.
void check_sent(int ranks, const Recipe& recipe, const Dataset& data,
                const std::map<std::string, double>& told) {
  dist::thread_worlds(ranks, [&](dist::World& world) {
    const OneThread one_thread;
    Trainer trainer(recipe, data, world);
    world.traffic().reset();
    trainer.train_step();
    if (world.rank() == 0)
      for (const auto& [axis, bytes] : told) {
        INFO(axis);
        CHECK(static_cast<double>(world.traffic().of(axis).bytes) == bytes);
      }
  });
}

}  // namespace

TEST_CASE("what ranks that share a model, or samples, take is told of each of them",
          "[long][nightly]") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 16, 16}}, .channels = 4, .text_tokens = 8, .text_width = 24});
  for (const char* type : {"dit", "moviegen"}) {
    const Recipe recipe = recipe_of(
        kNetwork, std::string("model.type: ") + type + "\ndata.tokens: 256\nmodel.compute: bf16");
    check_ranks(recipe, *data, 2, 1, 1);
    check_ranks(recipe, *data, 1, 2, 1);
    check_ranks(recipe, *data, 1, 1, 2);
    check_ranks(recipe, *data, 2, 2, 1);
  }
}

TEST_CASE("between steps a rank keeps its part of a shared state, as the formulas say") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{1, 8, 8}}, .channels = 4, .text_width = 24});
  for (const int ranks : {2, 4})
    for (const std::string shard : {"optimizer", "full"}) {
      Recipe recipe =
          recipe_of(kNetwork, "data: {tokens: 16, packs: 4}\nparallel: {shard: " + shard +
                                  "}\nmodel: {attention_head_dim: 64}");
      data->fit(recipe);
      double all = 0, blocks = 0;  // elements: all, and in matrices of blocks
      double taken = 0;
      release_cached_memory();
      const double before = static_cast<double>(cpu_memory().current);
      dist::thread_worlds(ranks, [&](dist::World& world) {
        const OneThread one_thread;
        Trainer trainer(recipe, *data, world);
        for (int i = 0; i < 2; ++i)
          trainer.train_step();
        world.barrier();
        if (world.rank() == 0) {
          taken = (static_cast<double>(cpu_memory().current) - before) / ranks;
          for (const nn::Parameter* p : trainer.objective().parameters()) {
            const auto count = static_cast<double>(element_count(p->placement.global));
            all += count;
            const bool matrix = p->placement.global.size() == 2;
            if (matrix && p->name.starts_with("transformer_blocks.")) blocks += count;
          }
        }
        world.barrier();
      });
      const double rest = shard == "full" ? all - blocks : all;  // each rank has its weights whole
      const double formula = 8 * rest + (12 * rest + 20 * (all - rest)) / ranks;
      const MemoryNeed need =
          memory_need(recipe, ranks, Recompute::none, Device::cpu, fullest_pack(recipe, *data));
      INFO(ranks << " " << shard << ": " << need.weights << " + " << need.gradients << " + "
                 << need.moments << " + " << need.average << ", " << taken << " taken, "
                 << formula);
      const double told = need.weights + need.gradients + need.moments + need.average;
      CHECK(told == Approx(formula).epsilon(0.01));
      CHECK(taken == Approx(formula).epsilon(0.01));
    }
}

TEST_CASE("what the first rank sends in a step is told, by axis", "[long]") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 16, 16}}, .channels = 4, .text_tokens = 8, .text_width = 24});
  for (const char* more : {"cp_kind: gather", "cp_kind: all_to_all"})
    for (const Recompute recompute : {Recompute::none, Recompute::block}) {
      Recipe recipe =
          recipe_of(kNetwork, std::string("data: {tokens: 256, packs: 4, micro_packs: 1}\n") +
                                  "parallel: {tp: 2, cp: 2, " + more + "}\n");
      recipe.model.recompute = nn::recompute_name(recompute);
      data->fit(recipe);
      CAPTURE(more, recipe.model.recompute);
      std::map<std::string, double> told =
          step_work(recipe, 8, recompute, Device::cpu, fullest_pack(recipe, *data)).sent;
      CHECK(told.size() == 4);
      told["tp"] += 8;  // the norm
      check_sent(8, recipe, *data, told);
    }
}

TEST_CASE("what the first rank of stages that share a state sends in a step is told, by axis") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 16, 16}}, .channels = 4, .text_tokens = 8, .text_width = 24});
  for (const auto& [ranks, parallel] : {std::pair{8, "pp: 2, tp: 2, shard: full"},
                                        {4, "pp: 2, shard: full"},
                                        {4, "pp: 2, vpp: 2, shard: optimizer"}}) {
    CAPTURE(ranks, parallel);
    const std::string more =
        "data: {tokens: 256, packs: 6}\nmodel: {num_layers: 4, compute: bf16}\nparallel: {";
    Recipe recipe = recipe_of(kNetwork, more + parallel + "}\n");
    data->fit(recipe);
    std::map<std::string, double> told =
        step_work(recipe, ranks, Recompute::none, Device::cpu, fullest_pack(recipe, *data)).sent;
    CHECK(told.contains("pp"));
    told.at("tp+cp+shard+pp") += 8 * (ranks - 1);  // the norm
    check_sent(ranks, recipe, *data, told);
  }
}

namespace {

/// Runs of networks with these settings, and of tokenizers.
void check_runs(const std::vector<std::string>& types, const std::vector<std::string>& settings,
                const std::vector<std::string>& of_tokenizers) {
  const OneThread one_thread;
  // Of several packs each is taken to be as the fullest one.
  const std::unique_ptr<Dataset> mixed = make_up_latents(
      {.sizes = {{4, 8, 16}, {1, 8, 8}}, .channels = 4, .text_tokens = 8, .text_width = 24});
  const std::unique_ptr<Dataset> alike =
      make_up_latents({.sizes = {{4, 8, 16}}, .channels = 4, .text_width = 24});
  for (const std::string& type : types) {
    const std::string model = "model.type: " + type + "\n";
    for (const std::string& more : settings)
      check_run(recipe_of(kNetwork, model + more), *mixed);
    for (const char* more : {"data.packs: 2", "data: {packs: 4, micro_packs: 1}"})
      check_run(recipe_of(kNetwork, model + more), *alike);
  }
  for (const std::string& more : of_tokenizers) {
    const Recipe recipe = recipe_of(kTokenizer, more);
    check_run(recipe, *make_up_clips({{9, 32, 32}, {1, 16, 16}}, recipe.model.autoencoder));
    // Packs of as many tokens differ in pixels: 16 pictures, or 5 clips and a picture.
    check_run(recipe, *make_up_clips({{9, 16, 16}, {1, 16, 16}}, recipe.model.autoencoder));
  }
}

}  // namespace

TEST_CASE("the memory that is told of a run is what its tensors' allocator hands out") {
  check_runs({"dit"}, {"model.compute: bf16"}, {""});
}

TEST_CASE("the memory that is told of each type of run is what their allocator hands out",
          "[long][nightly]") {
  check_runs({"dit", "stdit", "moviegen"},
             {"", "model.compute: bf16", "optimizer.moments: bf16", "ema.mode: 'off'"},
             {"", "model.compute: bf16", "model.levels: [8, 8, 8, 5, 5, 5]"});
}

TEST_CASE("steps of a diffusion network may be graphs where nothing is exchanged or offloaded") {
  ModelRecipe model = recipe_of(kNetwork, "model.offload: true").model;
  CHECK(may_be_graphs(model, Recompute::none, false));  // nothing is recomputed, so nothing moves
  CHECK_FALSE(may_be_graphs(model, Recompute::block, false));
  model.offload = false;
  CHECK(may_be_graphs(model, Recompute::block, false));
  CHECK_FALSE(may_be_graphs(model, Recompute::block, true));
  CHECK_FALSE(may_be_graphs(recipe_of(kTokenizer, "").model, Recompute::none, false));
}

TEST_CASE("what is said of memory that is short names 'model.offload' where that is a way out") {
  static std::vector<std::string> lines;
  set_log_sink([](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::info);
  const auto said = [](const char* text, const char* more, Device device, Recompute recompute,
                       double usable) {
    lines.clear();
    MemoryNeed need;
    need.activations = 100;
    need.pinned = 2 << 20;
    const Recipe recipe = recipe_of(text, more);
    log_memory(recipe, 1, need, recompute, device, usable);
    log_offload(recipe, need, recompute);
    return fmt::format("{}", fmt::join(lines, "\n"));
  };
  const auto has = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  CHECK(has(said(kNetwork, "", Device::cuda, Recompute::block, 50), "set 'model.offload' true"));
  CHECK_FALSE(has(said(kNetwork, "", Device::cpu, Recompute::block, 50), "offload"));
  CHECK_FALSE(has(said(kTokenizer, "", Device::cuda, Recompute::block, 50), "offload"));
  const std::string both =
      said(kNetwork, "model.offload: true", Device::cuda, Recompute::block, 50);
  CHECK(has(both, "even with 'model.recompute' block and 'model.offload' true, 50 B are there"));
  CHECK_FALSE(has(both, "set 'model.offload'"));
  CHECK(has(both,
            "up to 2.0 MiB of the host's memory ('model.offload'); steps run without CUDA graphs"));
  CHECK(has(said(kNetwork, "model.offload: true", Device::cuda, Recompute::elementwise, 500),
            "'model.offload' moves nothing: 'model.recompute' is elementwise"));
  set_log_sink(nullptr, LogLevel::warning);

  MemoryNeed need;
  need.pinned = 1e18;
  CHECK(usage_error([&] {
          check_pinned(need, 1);
        }).starts_with("'model.offload' is true, and would pin about "));
  need.pinned = usable_memory(Device::cpu, 2) * 1.5;
  CHECK_NOTHROW(check_pinned(need, 1));
  CHECK_THROWS_AS(check_pinned(need, 2), Error);
  CHECK_NOTHROW(check_offload(recipe_of(kNetwork, "model.offload: true"), Device::cuda));
  CHECK_THROWS_AS(check_offload(recipe_of(kNetwork, "model.offload: true"), Device::cpu), Error);
  CHECK_NOTHROW(check_offload(recipe_of(kNetwork, ""), Device::cpu));
}

TEST_CASE("what would make memory less is what is not so yet, and what would help") {
  const auto less = [](const char* more, int ranks, Recompute recompute, Device device,
                       double lasting, double activations) {
    MemoryNeed need;
    need.moments = lasting;
    need.activations = activations;
    return less_memory(recipe_of(kNetwork, more), ranks, recompute, device, need, 100);
  };
  const auto has = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  // Full of weights: neither blocks that are recomputed already nor shorter packs help.
  const std::string full = less("", 4, Recompute::block, Device::cpu, 500, 73);
  CHECK(full.starts_with("set 'parallel.shard' full, set 'optimizer.moments' bf16 or 8bit, "));
  CHECK(full.ends_with(" or take a smaller model"));
  CHECK_FALSE(has(full, "recompute"));
  CHECK_FALSE(has(full, "data.tokens"));
  CHECK(has(less("parallel.shard: full", 4, Recompute::block, Device::cpu, 500, 0),
            "share the state among more ranks"));
  CHECK(has(less("", 1, Recompute::block, Device::cpu, 500, 0),
            "share the state among more ranks ('parallel.shard' full)"));
  CHECK_FALSE(has(less("optimizer.moments: 8bit", 4, Recompute::block, Device::cpu, 500, 0),
                  "'optimizer.moments'"));
  // Full of activations.
  const std::string none = less("", 4, Recompute::none, Device::cuda, 20, 100);
  CHECK(none.starts_with("set 'model.recompute' block"));
  CHECK(has(none, "lower 'data.tokens'"));
  CHECK_FALSE(has(none, "'parallel.shard'"));
  CHECK(
      less("", 4, Recompute::block, Device::cuda, 20, 100).starts_with("set 'model.offload' true"));
}

TEST_CASE("of clips the pack with the largest one counts, and of these that of most pixels") {
  Recipe recipe = recipe_of(kTokenizer, "");
  const std::unique_ptr<Dataset> data =
      make_up_clips({{9, 16, 16}, {1, 32, 32}, {5, 8, 8}}, recipe.model.autoencoder);
  data->fit(recipe);
  const auto pixels = [&](const data::Entry& e) {
    return (1 + (e.frames - 1) * 4) * e.height * e.width * 16;
  };
  std::vector<std::pair<int, int>> loads;  // the largest clip, and all
  for (const data::Pack& pack :
       data::plan_packs(data->tokens(recipe.model), recipe.data.pack_options())) {
    auto& [largest, all] = loads.emplace_back();
    for (const std::size_t i : pack)
      largest = std::max(largest, pixels(data->entry(i))), all += pixels(data->entry(i));
  }
  std::pair<int, int> found;
  for (const data::Entry& entry : fullest_pack(recipe, *data))
    found = {std::max(found.first, pixels(entry)), found.second + pixels(entry)};
  CHECK(found == *std::ranges::max_element(loads));
  // It is not the first with such a clip, nor one of most tokens.
  const auto first = std::ranges::find(loads, found.first, &std::pair<int, int>::first);
  CHECK(first->second < found.second);
}

TEST_CASE("adapters: the memory that is told, and numbers that are trained") {
  const OneThread one_thread;
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 8, 16}}, .channels = 4, .text_width = 24});
  Recipe recipe = recipe_of(kNetwork, "");
  recipe.lora.rank = 3;
  check_run(recipe, *data);
  data->fit(recipe);
  const ModelNumbers with = model_numbers(recipe);
  std::int64_t adapters = 0;
  for (const models::NetworkMatrix& m : models::lora_targets(recipe.model.dit, recipe.lora))
    adapters += 3 * (m.rows + m.columns);
  CHECK(with.trained == adapters);
  recipe.lora.rank = 0;
  CHECK(model_numbers(recipe).all == with.all);
  CHECK(model_numbers(recipe).trained == with.all);
}

TEST_CASE(
    "what training takes of operations is linear in the texts, and threefold that of forward") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 16, 16}}, .channels = 4, .text_width = 24});
  Recipe recipe = recipe_of(kNetwork, "data.tokens: 256");
  data->fit(recipe);
  SampleFlops flops(recipe);
  data::Entry sample = data->entry(0);
  sample.text_tokens = 7;
  const double seven = flops.of(sample);
  const auto network = models::make_network(recipe.model.dit, 0, DType::f32, Device::meta);
  const MetaAccount account(Device::cpu);
  models::NetworkBatch batch;
  batch.samples = {{4, 16, 16, 24.f, 0, 7}};
  batch.latents = Tensor({std::int64_t{4} * 4 * 16 * 16}, DType::f32, Device::meta);
  batch.text = Tensor({7, 24}, DType::f32, Device::meta);
  ops::Tape silent(false);
  network->forward(silent, batch);
  // What enters the network has no gradient.
  CHECK(seven == Approx(3 * account.work().flops).epsilon(0.01));
  sample.text_tokens = 9;
  const double nine = flops.of(sample);
  sample.text_tokens = 8;
  CHECK(flops.of(sample) == Approx((seven + nine) / 2));
}

TEST_CASE(
    "the work of a rank's step: all packs' products, and the optimizer's passes over memory") {
  const std::unique_ptr<Dataset> data =
      make_up_latents({.sizes = {{4, 8, 16}}, .channels = 4, .text_width = 24});
  Recipe recipe = recipe_of(kNetwork,
                            "data: {packs: 6, micro_packs: 2}\noptimizer.moments: bf16\n"
                            "model.compute: bf16\nema.every: 4\n");
  data->fit(recipe);
  const std::vector<data::Entry> pack = fullest_pack(recipe, *data);
  const auto sums = [&](int ranks, Recompute recompute) {
    return work_by_kind(step_work(recipe, ranks, recompute, Device::cpu, pack));
  };
  const auto flops = [](const Json& work) {
    return work["products"]["flops"].get<double>() + work["attention"]["flops"].get<double>();
  };
  SampleFlops of_samples(recipe);
  double expected = 0;
  for (const data::Entry& sample : pack)
    expected += of_samples.of(sample);
  const Json alone = sums(1, Recompute::none), shared = sums(2, Recompute::none);
  CHECK(flops(alone) == Approx(6 * expected));
  CHECK(flops(shared) == Approx(3 * expected));
  CHECK(shared["elementwise"]["bytes"].get<double>() * 2 ==
        Approx(alone["elementwise"]["bytes"].get<double>()).epsilon(0.01));
  const Json block = sums(1, Recompute::block), kept = sums(1, Recompute::block_but_attention);
  CHECK(flops(block) > 1.2 * flops(alone));
  // Self-attention is not computed again, attention across texts is.
  CHECK(kept["products"] == block["products"]);
  const auto attention = [](const Json& work) { return work["attention"]["flops"].get<double>(); };
  const double again = attention(block) - attention(alone);
  CHECK((attention(block) - attention(kept)) / again ==
        Approx(128. / (128 + 512)));  // tokens, text

  // The norm; gradient, weight and both moments; every fourth time the average.
  const double numbers = static_cast<double>(model_numbers(recipe).trained);
  const double bytes = 4 + 4 + 2 * (4 + 2 + 2) + 2 * 4 / 4.;
  CHECK(alone["optimizer"]["bytes"].get<double>() == Approx(bytes * numbers));
  CHECK(shared["optimizer"] == alone["optimizer"]);
  recipe.ema.place = "host";
  const Json without = work_by_kind(step_work(recipe, 1, Recompute::none, Device::cuda, pack));
  CHECK(without["optimizer"]["bytes"].get<double>() == Approx((bytes - 2) * numbers));
}

TEST_CASE("a tokenizer's operations are those that are published") {
  // Of CV8x8x8: 105.65 million parameters; a video of 121 x 512 x 512 takes 8.5 + 0.6 TFLOP
  // (convolutions, attention) to encode and 15.9 + 0.6 to decode.
  const MetaAccount account(Device::cuda);
  const models::CosmosAutoencoder model(models::CosmosConfig(), 0, DType::bf16, Device::meta);
  double parameters = 0;
  for (const nn::Parameter* parameter : model.parameters())
    parameters += static_cast<double>(parameter->elements());
  CHECK(parameters == Approx(105.65e6).epsilon(0.001));
  ops::Tape silent(false);
  const Tensor latents = model.encode(silent, Tensor({121, 512, 512, 3}, DType::f32, Device::meta));
  const double encoded = account.work().flops;
  CHECK(encoded == Approx(9.1e12).epsilon(0.05));
  model.decode(silent, latents);
  CHECK(account.work().flops - encoded == Approx(16.5e12).epsilon(0.05));
}
