// Ranks that share the state of what they train have the bits of ranks that do not, send what is
// said, and hold each part once.
// SPDX-License-Identifier: Apache-2.0
#include "train/state/state_shards.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "io/tensor_range.h"
#include "latents_fixture.h"
#include "models/folder/load_tensors.h"
#include "train/diffusion/data.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;
using dist::Operation;

namespace {

using Tensors = std::map<std::string, std::vector<float>>;  // whole, by name

struct ShardsAfter {
  std::vector<double> losses, norms;
  Tensors weights, moments, average;
  std::map<std::string, int> holders;  // of each element of all states, if as many have each
  std::vector<std::int64_t> sums_sent, weights_sent;  // bytes of the last step, by rank
  std::int64_t elements = 0, weight_bytes = 0;        // of the model: P and the sum of w
  std::int64_t sharded = 0, sharded_bytes = 0;        // of what is gathered by blocks
  std::int64_t replicas_sent = 0;                     // by all ranks together
  int most_gathered = 0;
  // Of a pipeline the numbers above are of all stages together; of what each of them has:
  std::int64_t on_all_stages = 0, their_sums_sent = 0, their_parts_sent = 0;
  std::vector<Json> validations;  // of the weights, and of their average
};

/// Puts a state's elements where they lie in the whole one, and counts who has them. Of what
/// several have with other bits nothing is left.
void put(const nn::Parameter& state, const Tensor& values, Tensors& wholes, Tensors* counts) {
  const io::TensorRange box = models::held_range(state);
  const auto size = static_cast<std::size_t>(element_count(box.shape));
  std::vector<float>& whole = wholes[state.name];
  whole.resize(size, NAN);
  if (counts != nullptr) (*counts)[state.name].resize(size, 0);
  const Tensor floats = values.to(DType::f32);
  const std::int64_t first = state.placement.begin;
  io::RangeRuns(box).for_each(
      first, first + values.elements(), [&](std::int64_t at, std::int64_t in, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          const auto place = static_cast<std::size_t>(at + i);
          const float value = floats.data<float>()[in - first + i];
          const bool other = !std::isnan(whole[place]) && whole[place] != value;
          whole[place] = other ? NAN : value;
          if (counts != nullptr) (*counts)[state.name][place] += 1;
        }
      });
}

ShardsAfter train_shards(int ranks, const Recipe& recipe, const Dataset& data, int steps,
                         bool validates = false) {
  ShardsAfter after;
  Tensors counts;
  std::mutex mutex;
  after.sums_sent.resize(static_cast<std::size_t>(ranks));
  after.weights_sent = after.sums_sent;
  dist::thread_worlds(ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    Trainer trainer(recipe, data, world);
    std::vector<double> losses, norms;
    std::vector<Json> validations;
    for (int i = 0; i < steps; ++i) {
      for (int of = 0; of < 2 && validates && i + 1 == steps; ++of) {
        validations.push_back(
            Validation(recipe, data, "train").run(trainer.objective(), trainer.parallel()));
        trainer.swap_ema();
      }
      world.traffic().reset();
      const StepResult result = trainer.train_step();
      losses.push_back(result.loss.mean());
      norms.push_back(result.gradient_norm);
    }
    const auto rank = static_cast<std::size_t>(world.rank());
    const std::lock_guard lock(mutex);
    const auto sent = [&](Operation operation) {
      return world.traffic().of("tp+cp+shard", operation).bytes +
             world.traffic().of("cp+shard", operation).bytes;
    };
    after.sums_sent[rank] = sent(Operation::reduce_scatter);
    const char* const stages = "tp+cp+shard+pp";
    after.their_sums_sent += world.traffic().of(stages, Operation::reduce_scatter).bytes;
    after.their_parts_sent += world.traffic().of("pp", Operation::all_gather).bytes;
    after.validations = validations;
    after.replicas_sent += world.traffic().of("replicate", Operation::all_reduce).bytes;
    after.weights_sent[rank] = sent(Operation::all_gather);
    if (const nn::BlockShards* blocks = trainer.parallel().blocks())
      after.most_gathered = std::max(after.most_gathered, blocks->most_gathered());
    after.losses = losses;
    after.norms = norms;
    const nn::ParameterList& states = trainer.optimizer().parameters();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const nn::Parameter& state = *states[i];
      put(state, state.read(), after.weights, &counts);
      put(state, trainer.optimizer().state("adam_m").tensors[i], after.moments, nullptr);
      if (trainer.optimizer().has_ema())
        put(state, trainer.optimizer().ema()[i], after.average, nullptr);
    }
    // Of the first rank of each stage.
    if (world.rank() % (world.size() / recipe.parallel.pp) == 0)
      for (const nn::Parameter* parameter : trainer.objective().parameters()) {
        const Tensor& sent_of = parameter->split() ? parameter->high : parameter->value;
        const auto bytes = static_cast<std::int64_t>(sent_of.bytes());
        (parameter->sharded ? after.sharded : after.elements) += parameter->elements();
        (parameter->sharded ? after.sharded_bytes : after.weight_bytes) += bytes;
        if (rank == 0 && parameter->on_all_stages) after.on_all_stages += parameter->elements();
      }
  });
  for (const auto& [name, list] : counts) {
    const auto [least, most] = std::ranges::minmax(list);
    after.holders[name] = least == most ? static_cast<int>(least) : -1;
  }
  return after;
}

Recipe shard_recipe(const std::string& model, const std::string& parallel, const Dataset& data,
                    const std::string& optimizer = "clip: 0",
                    const std::string& ema = "mode: decay") {
  Recipe recipe = make_recipe(parse_yaml(
      fmt::format("model: {{num_attention_heads: 4, attention_head_dim: 12, num_layers: 3, "
                  "max_size: [4, 8, 8], {}}}\n"
                  "data: {{tokens: 16, packs: 4, window: 8}}\n"
                  "optimizer: {{lr: 0.003, {}}}\n"
                  "schedule: {{warmup: 2}}\n"
                  "ema: {{{}}}\n"
                  "parallel: {{{}}}\n"
                  "train: {{steps: 6}}\n",
                  model, optimizer, ema, parallel),
      "recipe"));
  data.fit(recipe);
  return recipe;
}

bool same_numbers(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!(values[i] == b.at(name)[i])) return false;
  return true;
}

/// The same bits; of the norm the same sum, in another order.
void check_same_training(const ShardsAfter& shared, const ShardsAfter& plain) {
  CHECK(shared.losses == plain.losses);
  CHECK(same_numbers(shared.weights, plain.weights));
  CHECK(same_numbers(shared.moments, plain.moments));
  CHECK(same_numbers(shared.average, plain.average));
  REQUIRE(shared.norms.size() == plain.norms.size());
  for (std::size_t i = 0; i < plain.norms.size(); ++i)
    CHECK(shared.norms[i] == Approx(plain.norms[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("a shared state is trained to the bits of one that every rank has", "[long][nightly]") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  struct Model {
    const char *model, *optimizer, *ema;
  };
  for (const Model& one : {Model{"type: dit", "clip: 0", "mode: decay"},
                           {"compute: bf16, adaln_lora_dim: 4", "clip: 0", "mode: decay"},
                           {"type: stdit, recompute: block", "clip: 0, moments: bf16", "mode: off"},
                           {"type: moviegen, compute: bf16", "clip: 0", "mode: decay, every: 2"}})
    for (const auto& [ranks, layout] :
         {std::pair{2, ""}, {3, ""}, {2, "cp: 2, cp_kind: all_to_all, "}, {4, "tp: 2, "}}) {
      CAPTURE(one.model, ranks, layout);
      const auto train = [&, world = ranks, axes = layout](const char* shard) {
        const Recipe recipe = shard_recipe(one.model, axes + std::string("shard: ") + shard, *data,
                                           one.optimizer, one.ema);
        return train_shards(world, recipe, *data, 3);
      };
      const ShardsAfter plain = train("none");
      for (const char* shard : {"optimizer", "full"}) {
        CAPTURE(shard);
        const ShardsAfter shared = train(shard);
        check_same_training(shared, plain);
        for (const auto& [name, holders] : shared.holders) {
          INFO(name);
          CHECK(holders == 1);
        }
        CHECK(shared.most_gathered <= 2);
      }
    }
}

TEST_CASE("stages whose ranks share a state have the bits of stages whose ranks have it all",
          "[long][nightly]") {
  const TemporaryFolder folder, broken;
  write_latents(folder.path);
  write_latents(broken.path, {.broken = 5});
  const auto whole = open_latents(folder.path, "train"), data = open_latents(broken.path, "train");
  struct Stages {
    int ranks;
    const char *model, *layout;
    int packs = 4;  // where a rank has no pack, or one more than others
  };
  for (const Stages& one :
       {Stages{4, "type: dit, learnable_positions: true", "pp: 2, ", 5},
        Stages{6, "compute: bf16, learnable_positions: true", "pp: 3, ", 3},
        Stages{8, "type: stdit, recompute: block", "pp: 2, cp: 2, hybrid: true, "},
        Stages{4, "type: moviegen, recompute: elementwise", "pp: 2, vpp: 2, ", 6}}) {
    CAPTURE(one.ranks, one.model, one.layout);
    int stages = 0;
    const auto train = [&](const char* shard) {
      Recipe recipe = shard_recipe(one.model, one.layout + std::string("shard: ") + shard, *whole);
      recipe.data.packs = one.packs;
      // Three stages have uneven parts of what each of them has.
      if (recipe.parallel.pp == 3) recipe.model.dit.attention_head_dim = 16;
      recipe.validation.sigmas = {1};
      recipe.validation.samples = 7;
      if (recipe.parallel.vpp > 1) recipe.model.dit.num_layers = 5;
      recipe.data.tokens = 8;  // a sample or two: one pack has none that can be read
      stages = recipe.parallel.pp;
      return train_shards(one.ranks, recipe, *data, 2, true);
    };
    const ShardsAfter plain = train("none");
    REQUIRE(plain.validations.size() == 2);
    CHECK(plain.validations[0] != plain.validations[1]);
    for (const char* shard : {"optimizer", "full"}) {
      CAPTURE(shard);
      const ShardsAfter shared = train(shard);
      check_same_training(shared, plain);
      CHECK(shared.validations == plain.validations);
      for (const auto& [name, holders] : shared.holders) {
        INFO(name);
        CHECK((holders == 1 || holders == stages));
      }
    }
  }
}

TEST_CASE("stages send what they share once a step, and of what all have each its part") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  for (const std::string compute : {"f32", "bf16"})
    for (const bool full : {false, true})
      for (const auto& [ranks, pp] : {std::pair{4, 2}, {6, 3}}) {
        CAPTURE(compute, full, ranks, pp);
        const std::string shard = full ? "full" : "optimizer";
        const Recipe recipe =
            shard_recipe("compute: " + compute, fmt::format("pp: {}, shard: {}", pp, shard), *data);
        const ShardsAfter after = train_shards(ranks, recipe, *data, 2);
        const int of_stage = ranks / pp;
        REQUIRE((after.sharded > 10000) == full);
        REQUIRE(after.on_all_stages > 1000);
        const auto all = [](const std::vector<std::int64_t>& sent) {
          return std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
        };
        const std::int64_t in_stage = after.elements - pp * after.on_all_stages + after.sharded;
        CHECK(all(after.sums_sent) == (of_stage - 1) * 4 * in_stage);
        CHECK(after.their_sums_sent == (ranks - 1) * 4 * after.on_all_stages);
        CHECK(after.their_parts_sent == (pp - 1) * 4 * after.on_all_stages);
        CHECK(all(after.weights_sent) ==
              (of_stage - 1) * (after.weight_bytes + after.sharded_bytes));
      }
}

TEST_CASE("a state that groups of ranks share, each all of it, is trained as one rank's") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  const ShardsAfter one =
      train_shards(1, shard_recipe("type: dit", "shard: none", *data), *data, 3);
  const ShardsAfter shared =
      train_shards(4, shard_recipe("type: dit", "shard: optimizer, replicate: 2", *data), *data, 3);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    CHECK(shared.losses[i] == Approx(one.losses[i]).epsilon(1e-6));
    CHECK(shared.norms[i] == Approx(one.norms[i]).epsilon(1e-5));
  }
  for (const auto& [name, holders] : shared.holders) {
    INFO(name);
    CHECK(holders == 2);
  }
}

TEST_CASE("with clipping a shared state has the norm, and so the update, of one rank") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  const auto clipped = [&](const std::string& parallel) {
    return shard_recipe("type: dit", parallel, *data, "clip: 0.001");
  };
  const ShardsAfter one = train_shards(1, clipped("shard: none"), *data, 3);
  for (const auto& [ranks, layout] : {std::pair{2, "shard: optimizer"},
                                      {4, "tp: 2, shard: optimizer"},
                                      {4, "cp: 2, shard: full"},
                                      {4, "pp: 2, shard: optimizer"},
                                      {8, "pp: 2, shard: full, replicate: 2"},
                                      {4, "shard: full, replicate: 2"}}) {
    CAPTURE(ranks, layout);
    const ShardsAfter shared = train_shards(ranks, clipped(layout), *data, 3);
    for (std::size_t i = 0; i < one.norms.size(); ++i) {
      CHECK(shared.norms[i] == Approx(one.norms[i]).epsilon(1e-5));
      CHECK(one.norms[i] > 0.001);
    }
    for (const auto& [name, moments] : one.moments) {
      INFO(name);
      double difference = 0, all = 0;
      for (std::size_t i = 0; i < moments.size(); ++i) {
        difference += std::pow(moments[i] - shared.moments.at(name)[i], 2);
        all += std::pow(moments[i], 2);
      }
      CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(all));
    }
  }
}

TEST_CASE("a rank sends (N-1)/N of the gradients and of the weights, of split ones the bf16 half",
          "[long]") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  for (const std::string compute : {"f32", "bf16"})
    for (const bool full : {false, true})
      for (const int ranks : {2, 3, 4}) {
        CAPTURE(compute, full, ranks);
        Recipe recipe =
            shard_recipe("compute: " + compute, full ? "shard: full" : "shard: optimizer", *data);
        recipe.data.micro_packs = 1;  // of 4 packs: on 3 ranks some have an empty pass
        const std::int64_t passes = (4 + ranks - 1) / ranks;
        const ShardsAfter after = train_shards(ranks, recipe, *data, 2);
        REQUIRE(after.elements > 10000);
        REQUIRE((after.sharded > 10000) == full);
        // What all sent together, exactly; and a rank's part, but for an element of each message.
        const std::int64_t sums_sent = 4 * (after.elements + passes * after.sharded);
        const std::int64_t weights_sent = after.weight_bytes + 2 * passes * after.sharded_bytes;
        std::int64_t sums = 0, weights = 0;
        for (std::size_t rank = 0; rank < after.sums_sent.size(); ++rank) {
          sums += after.sums_sent[rank];
          weights += after.weights_sent[rank];
          const double part = (ranks - 1.0) / ranks, slack = 60.0 * ranks * 8;
          CHECK(std::abs(static_cast<double>(after.sums_sent[rank]) -
                         part * static_cast<double>(sums_sent)) < slack);
          CHECK(std::abs(static_cast<double>(after.weights_sent[rank]) -
                         part * static_cast<double>(weights_sent)) < slack);
        }
        CHECK(sums == (ranks - 1) * sums_sent);
        CHECK(weights == (ranks - 1) * weights_sent);
      }
}

TEST_CASE("gathered matrices that stay between the passes of a step are gathered once") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  const auto train = [&](const char* parallel) {
    Recipe recipe = shard_recipe("compute: bf16", parallel, *data);
    recipe.data.micro_packs = 1;
    return train_shards(2, recipe, *data, 3);
  };
  const ShardsAfter freed = train("shard: full"), kept = train("shard: full, reshard: false");
  CHECK(kept.losses == freed.losses);
  CHECK(same_numbers(kept.weights, freed.weights));
  CHECK(kept.weights_sent[0] + kept.weights_sent[1] == kept.weight_bytes + kept.sharded_bytes);
  CHECK(freed.most_gathered == 2);
  CHECK(kept.most_gathered == 3);
}

TEST_CASE("replicas of shards send each other the sums of these once a step") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto data = open_latents(folder.path, "train");
  for (const std::string shard : {"optimizer", "full"}) {
    CAPTURE(shard);
    Recipe recipe = shard_recipe("compute: f32", "replicate: 2, shard: " + shard, *data);
    recipe.data.micro_packs = 1;
    const ShardsAfter after = train_shards(4, recipe, *data, 2);
    // 2 (R-1)/R g P/N of each of R N ranks.
    CHECK(after.replicas_sent == 2 * 4 * (after.elements + after.sharded));
  }
}
