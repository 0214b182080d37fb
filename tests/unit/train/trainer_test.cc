// SPDX-License-Identifier: Apache-2.0
#include "train/step/trainer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "support/distance.h"
#include "support/epoch_packs.h"
#include "train/diffusion/data.h"
#include "train/diffusion/objective.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;
using Catch::Contains;

namespace {

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<float> weights;
};

Outcome train_steps(const Recipe& recipe, const Dataset& data, dist::World& world, int steps) {
  Trainer trainer(recipe, data, world);
  Outcome outcome;
  for (int i = 0; i < steps; ++i) {
    const StepResult result = trainer.train_step();
    outcome.losses.push_back(result.loss.mean());
    outcome.norms.push_back(result.gradient_norm);
  }
  for (const nn::Parameter* parameter : trainer.objective().parameters()) {
    const auto values = parameter->value.floats();
    outcome.weights.insert(outcome.weights.end(), values.begin(), values.end());
  }
  return outcome;
}

void check_alike(const Outcome& a, const Outcome& b) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(1e-5));
    CHECK(a.norms[i] == Approx(b.norms[i]).epsilon(1e-4));
  }
  CHECK(largest_difference(a.weights, b.weights) <
        1e-4);  // Adam turns a rounding of a tiny gradient into a part of lr, 3e-3
}

}  // namespace

TEST_CASE("order: every epoch takes each sample once, and any position can be reached at once") {
  const std::vector<std::int64_t> tokens = {8, 4, 8, 8, 4, 8, 4};
  data::PackingOptions options;
  options.tokens = 16;
  options.window = 4;
  const auto lengths = [&](std::span<const std::uint64_t> samples) {
    std::vector<std::int64_t> of_samples;
    for (const std::uint64_t i : samples)
      of_samples.push_back(tokens[i]);
    return of_samples;
  };
  PackOrder order(tokens.size(), lengths, 1, options);
  std::multiset<std::size_t> seen;
  std::vector<data::Pack> packs;
  std::vector<DataPosition> positions;
  while (positions.empty() || order.position().epoch < 3) {
    positions.push_back(order.position());
    packs.push_back(order.next());
    std::int64_t sum = 0;
    for (const std::size_t i : packs.back()) {
      seen.insert(i);
      sum += tokens[i];
    }
    CHECK(sum <= 16);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
    CHECK(seen.count(i) >= 3);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    PackOrder other(tokens.size(), lengths, 1, options);
    other.seek(positions[i]);
    CHECK(other.next() == packs[i]);
  }
  CHECK_THROWS_AS(order.seek({0, 99}), Error);
}

TEST_CASE("order: packs are of whole epochs or of blocks") {
  const std::vector<std::int64_t> tokens(data::kBlock + 64, 4);
  const auto lengths = [](std::span<const std::uint64_t> samples) {
    return std::vector<std::int64_t>(samples.size(), 4);
  };
  for (const data::Packing packing :
       {data::Packing::best_fit, data::Packing::balanced, data::Packing::blocks}) {
    const data::PackingOptions options{.tokens = 64, .packing = packing};
    PackOrder order(tokens.size(), lengths, 1, options);
    std::vector<data::Pack> packs;
    while (order.position().pack < (packing == data::Packing::blocks ? 1024U : 1028U))
      packs.push_back(order.next());
    const std::vector<data::Pack> epoch = data::epoch_packs(tokens, options, 1, 0);
    CHECK(epoch.size() == 1028);
    CHECK(std::ranges::equal(packs, std::span(epoch).first(packs.size())));
    order.next();
    const bool blocks = packing == data::Packing::blocks;
    CHECK(order.position().block == (blocks ? 1 : 0));
    CHECK(order.position().epoch == (blocks ? 0 : 1));
    if (!blocks) CHECK_THROWS_WITH(order.seek({0, 0, 1}), Contains("beyond the 1 blocks"));
  }
  CHECK(RunState::from_json(RunState{.data = {3, 7, 5}}.to_json(), "state").data.block == 5);
}

TEST_CASE("trainer: packing into forwards and dealing to ranks change only the rounding") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  Recipe recipe = tiny_recipe();
  data.fit(recipe);
  CHECK(recipe.model.dit.in_channels == 4);
  CHECK(recipe.model.dit.text_embed_dim == 8);
  const auto self = dist::self_world();
  const Outcome whole = train_steps(recipe, data, *self, 4);
  CHECK(whole.losses[0] > 0);

  Recipe micro = recipe;
  micro.data.micro_packs = 1;
  check_alike(train_steps(micro, data, *self, 4), whole);

  Recipe recomputing = recipe;
  for (const char* mode : {"none", "elementwise", "block"}) {
    recomputing.model.recompute = mode;
    CHECK(train_steps(recomputing, data, *self, 4).weights == whole.weights);
  }

  // Two ranks, or three, share three packs: a mean of means would weigh samples differently; a sum
  // of gradients that were already divided would be twice too large, which Adam hides and the norm
  // shows.
  for (const int ranks : {2, 3}) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
    dist::thread_worlds(ranks, [&](dist::World& world) {
      outcomes[static_cast<std::size_t>(world.rank())] = train_steps(recipe, data, world, 4);
    });
    for (const Outcome& outcome : outcomes) {
      check_alike(outcome, whole);
      CHECK(outcome.weights == outcomes[0].weights);
    }
  }
}

TEST_CASE("faults 6, 9: gradients reach what blocks share: time embedding, its norm, positions") {
  // The shared AdaLN term and the position tables detached in the blocks (trained by
  // the last layer alone, or not at all); a norm of the time embedding that is a parameter nobody
  // uses.
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  Recipe recipe = tiny_recipe();
  data.fit(recipe);
  const auto world = dist::self_world();
  Trainer trainer(recipe, data, *world);
  for (int i = 0; i < 3; ++i)
    trainer.train_step();  // gates begin at zero and shut everything off

  BatchBuilder builder(recipe.model.dit);
  for (std::size_t i = 0; i < 2; ++i)
    builder.add(data.read(i), 1.0, false, Random(1, Purpose::noise, 0, i));
  const NoisyBatch batch = builder.build();
  const models::DiffusionNetwork& model =
      dynamic_cast<const DiffusionObjective&>(trainer.objective()).network();
  const auto loss_now = [&] {
    ops::Tape tape(false);
    return diffusion_loss(model.forward(tape, batch.input), batch, 0).sums(batch).mean();
  };
  nn::zero_gradients(model.parameters());
  ops::Tape tape;
  const Tensor output = model.forward(tape, batch.input);
  const Loss loss = diffusion_loss(output, batch, 1);
  tape.backward(output, loss.error.seed);
  const double elements = loss.sums(batch).elements();

  int checked = 0;
  for (nn::Parameter* parameter : model.parameters()) {
    double square = 0;
    for (const float g : parameter->grad.floats())
      square += static_cast<double>(g) * g;
    INFO(parameter->name);
    CHECK(square > 0);
    if (parameter->name.find("time_embed") == std::string::npos &&
        parameter->name.find("pos_emb") == std::string::npos)
      continue;
    // Along its gradient the loss must change as fast as the gradient says: a path that is missing
    // anywhere makes the difference.
    const double norm = std::sqrt(square), step = 2e-3;
    const std::vector<float> before(parameter->value.floats().begin(),
                                    parameter->value.floats().end());
    double sides[2];
    for (int side = 0; side < 2; ++side) {
      const double h = side == 0 ? step : -step;
      for (std::size_t i = 0; i < before.size(); ++i)
        parameter->value.floats()[i] =
            static_cast<float>(before[i] + h * parameter->grad.floats()[i] / norm);
      sides[side] = loss_now();
    }
    std::copy(before.begin(), before.end(), parameter->value.floats().begin());
    CHECK((sides[0] - sides[1]) / (2 * step) == Approx(norm / elements).epsilon(0.03));
    ++checked;
  }
  CHECK(checked >= 6);
}

TEST_CASE("trainer: a gradient that is not finite is skipped, counted, and fatal when it stays") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  Recipe recipe = tiny_recipe("optimizer: {max_skips: 2}");
  data.fit(recipe);
  const auto world = dist::self_world();
  Trainer trainer(recipe, data, *world);
  trainer.train_step();
  nn::Parameter& last = *trainer.objective().parameters().back();
  const float good = last.value.floats()[0];
  last.value.floats()[0] = NAN;
  const float other = last.value.floats()[1];
  CHECK(trainer.train_step().skipped);
  CHECK(trainer.state().step == 2);
  CHECK(trainer.state().updates == 1);
  CHECK(last.value.floats()[1] == other);
  CHECK(trainer.train_step().skipped);
  last.value.floats()[0] = good;
  CHECK_FALSE(trainer.train_step().skipped);
  CHECK(trainer.state().skips_in_row == 0);
  last.value.floats()[0] = NAN;
  trainer.train_step();
  trainer.train_step();
  CHECK_THROWS_WITH(trainer.train_step(), Catch::Contains("not finite in 3 steps in a row"));
}

TEST_CASE("trainer: a sample that cannot be used is left out and remembered") {
  const TemporaryFolder folder;
  write_latents(folder.path, {12, 5});
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  Recipe recipe = tiny_recipe();
  data.fit(recipe);
  const auto world = dist::self_world();
  Trainer trainer(recipe, data, *world);
  for (int i = 0; i < 4; ++i)
    CHECK_FALSE(trainer.train_step().skipped);
  REQUIRE(trainer.failures().size() == 1);
  CHECK(trainer.failures().begin()->first == data.entry(5).key);
  CHECK(trainer.failures().begin()->second.find("not finite") != std::string::npos);
}

TEST_CASE(
    "trainer: a sample that is to be left out is as one that cannot be read, but no failure") {
  const TemporaryFolder folder;
  write_latents(folder.path, {12, 5});
  for (const int ranks : {1, 2}) {
    Recipe recipe = tiny_recipe();
    recipe.parallel.tp = ranks;
    std::vector<float> weights[2];
    for (const bool told : {false, true}) {
      const auto set = open_latents(folder.path, "train");
      set->fit(recipe);
      if (told) set->leave_out({5});
      dist::thread_worlds(ranks, [&](dist::World& world) {
        Trainer trainer(recipe, *set, world);
        for (int i = 0; i < 4; ++i)
          trainer.train_step();
        CHECK(trainer.failures().size() == (told ? 0 : 1));
        if (world.rank() > 0) return;
        for (const nn::Parameter* parameter : trainer.objective().parameters()) {
          const auto values = parameter->value.floats();
          weights[told].insert(weights[told].end(), values.begin(), values.end());
        }
      });
    }
    CHECK(weights[0] == weights[1]);
  }
}

TEST_CASE("spikes: over so many times the median of the last hundred steps, and exact when kept") {
  RecentSteps steps;
  for (int i = 0; i < 99; ++i)
    steps.add(1 + i % 3, 10);
  CHECK_FALSE(steps.is_spike(1e9, 1e9, 3));
  steps.add(1e9, 1e-9);  // one that is far off does not move a median
  CHECK(steps.is_spike(6.01, 10, 3));
  CHECK_FALSE(steps.is_spike(6, 30, 3));
  CHECK(steps.is_spike(1, 30.01, 3));
  CHECK_FALSE(steps.is_spike(NAN, NAN, 3));
  steps.add(0.1, 1.0 / 3);
  const RecentSteps again =
      RecentSteps::from_json(parse_json(dump_json(steps.to_json()), "recent"), "state");
  CHECK(again.to_json() == steps.to_json());
  CHECK(again.to_json()["norms"].size() == RecentSteps::kSteps);
  CHECK(again.to_json()["norms"].back().get<double>() == 1.0 / 3);
  CHECK_THROWS_AS(RecentSteps::from_json({{"losses", {1.0}}, {"norms", {"a"}}}, "state"), Error);
  CHECK_THROWS_AS(RecentSteps::from_json({{"losses", {1.0}}}, "state"), Error);
}

TEST_CASE("trainer: a spike is skipped on all ranks, counted, and fatal when it stays") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  Recipe recipe = tiny_recipe("optimizer: {max_skips: 1}\ntrain: {skip_spikes: 3}");
  set->fit(recipe);
  for (const int ranks : {1, 3})
    dist::thread_worlds(ranks, [&](dist::World& world) {
      Trainer trainer(recipe, *set, world);
      CHECK_FALSE(trainer.train_step().skipped);
      CHECK(trainer.state().recent.to_json()["losses"].size() == 1);
      RunState low = trainer.state();
      for (int i = 0; i < 100; ++i)
        low.recent.add(1e9, 1e-9);  // the loss is no spike, the gradient is
      trainer.restore(low);
      const nn::Parameter& last = *trainer.objective().parameters().back();
      const float before = last.value.floats()[0];
      const StepResult result = trainer.train_step();
      CHECK(result.skipped);
      CHECK(result.spike);
      CHECK(result.gradient_norm > 0);
      CHECK(last.value.floats()[0] == before);
      CHECK(trainer.state().step == 2);
      CHECK(trainer.state().updates == 1);
      CHECK(trainer.state().skips_in_row == 1);
      CHECK(trainer.state().recent.to_json() == low.recent.to_json());
      RunState usual = trainer.state();
      usual.recent = {};
      trainer.restore(usual);
      CHECK_FALSE(trainer.train_step().skipped);
      CHECK(trainer.state().skips_in_row == 0);
      usual = trainer.state();
      usual.recent = low.recent;
      trainer.restore(usual);
      trainer.train_step();
      CHECK_THROWS_WITH(trainer.train_step(), Contains("was a spike, or not finite, in 2 steps"));
    });
}

TEST_CASE("dataset: what does not fit the recipe is a usage error that names the field") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train");
  const Dataset& data = *set;
  const auto error_of = [&](const std::string& more) {
    try {
      Recipe recipe = tiny_recipe(more);
      data.fit(recipe);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("fits");
  };
  CHECK(error_of("") == "fits");
  CHECK(error_of("model: {in_channels: 5}").find("'model.in_channels' is 5, but the data have 4") !=
        std::string::npos);
  CHECK(error_of("model: {text_embed_dim: 9}").find("text_embed_dim") != std::string::npos);
  CHECK(error_of("model: {patch_size: [1, 3, 2]}").find("patch_size") != std::string::npos);
  CHECK(error_of("model: {max_size: [4, 2, 8]}").find("max_size") != std::string::npos);
  // The largest sample, and not the first that is too large.
  CHECK(error_of("data: {tokens: 1}").find(" has 8 tokens, ") != std::string::npos);
  CHECK(error_of("data: {tokens: 7}")
            .ends_with("has 8 tokens, more than a pack holds: 'data.tokens' is 7; data.tokens=8 "
                       "takes all samples"));
  CHECK(data.facts()["trained"] == Json{{"frames", 2},
                                        {"height", 4},
                                        {"width", 4},
                                        {"fps", {8.0}},
                                        {"usual", {{"frames", 2}, {"height", 4}, {"width", 4}}}});
}

TEST_CASE("validation: the same number for the same weights, never negative, per noise level") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto set = open_latents(folder.path, "train"), other = open_latents(folder.path, "val");
  const Dataset &data = *set, &held_out = *other;
  Recipe recipe = tiny_recipe();
  data.fit(recipe);
  const auto world = dist::self_world();
  Trainer trainer(recipe, data, *world);
  Validation validation(recipe, held_out, "val");
  const Json first = validation.run(trainer.objective(), trainer.parallel());
  CHECK(first == validation.run(trainer.objective(), trainer.parallel()));
  CHECK(first["val_loss"].get<double>() >= 0);
  CHECK(first["val_sigmas"].size() == 2);
  CHECK(first["val_samples"] == 3);
  const double mean =
      (first["val_sigmas"]["0.3"].get<double>() + first["val_sigmas"]["3"].get<double>()) / 2;
  CHECK(first["val_loss"].get<double>() == Approx(mean));
  Recipe other_seed = recipe;  // the noise is the run's seed's business no more
  other_seed.train.seed = 99;
  CHECK(Validation(other_seed, held_out, "val").run(trainer.objective(), trainer.parallel()) ==
        first);
  for (int i = 0; i < 20; ++i)
    trainer.train_step();
  CHECK(validation.run(trainer.objective(), trainer.parallel())["val_loss"].get<double>() <
        first["val_loss"].get<double>());
}
