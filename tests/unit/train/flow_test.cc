// Training by flow matching: noise levels, loss, latents, recipes and what a checkpoint says.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/json.h"
#include "latents_fixture.h"
#include "support/golden.h"
#include "support/made_up_network.h"
#include "support/usage_error.h"
#include "train/checkpoint/generation_facts.h"
#include "train/diffusion/data.h"
#include "train/diffusion/loss.h"
#include "train/recipe/recipe_page.h"
#include "train/state/next_stage.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;
using models::Process;

namespace {

constexpr const char* kFlow = "diffusion: {process: flow}\n";

Recipe read_recipe(const std::string& text) {
  return make_recipe(parse_yaml(text, "'r.yaml'"));
}

std::string refusal(const std::string& text) {
  return usage_error([&] { read_recipe(text); });
}

/// A network of `channels` and a channel that marks given frames.
models::NetworkConfig marked_config(int channels) {
  models::NetworkConfig config;
  config.in_channels = channels + 1;
  config.out_channels = channels;
  config.text_embed_dim = 3;
  return config;
}

bool nearly_equal(std::span<const float> a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::abs(x - y) <= 2e-6f * (1 + std::abs(y)); });
}

}  // namespace

TEST_CASE("flow: times, input, loss and gradient are those of diffusers' scheduler and training") {
  const Golden golden("flow_loss");  // scripts/golden/flow_loss.py
  struct Case {
    int frames, height, width, given;
    double augment;
    int place;
  };
  const Case cases[] = {
      {1, 4, 2, 0, 0, 999}, {4, 2, 6, 0, 0, 400}, {3, 4, 2, 2, 0.05, 700}, {2, 2, 2, 1, 0.6, 10}};
  const Recipe recipe = read_recipe("diffusion: {process: flow, shift: 3}");
  BatchBuilder builder(marked_config(2), 0, recipe.diffusion.process);
  std::vector<float> input, output, gradient;
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const auto& [frames, height, width, given, augment, place] = cases[i];
    const std::string number = "." + std::to_string(i);
    // The scheduler's times are even before the shift.
    const double level = sample_level(recipe.diffusion, (1000 - place) / 1000.0, frames);
    CHECK(level == Approx(golden["level" + number][0]).epsilon(1e-6));
    CleanSample sample;
    sample.frames = frames;
    sample.height = height;
    sample.width = width;
    sample.fps = 24;
    sample.x0 = golden["x0" + number];
    builder.add(sample, level, true, Random(7, Purpose::noise, 3, i), {given, augment});
    for (const auto& [name, all] : std::map<std::string, std::vector<float>*>{
             {"input", &input}, {"output", &output}, {"gradient", &gradient}}) {
      const std::vector<float> part = golden[name + number];
      all->insert(all->end(), part.begin(), part.end());
    }
  }
  const NoisyBatch batch = builder.build();
  CHECK(nearly_equal(batch.input.latents.floats(), input));
  const Loss loss =
      diffusion_loss(Tensor::from(output, {static_cast<std::int64_t>(output.size())}), batch, 1);
  CHECK(nearly_equal(loss.error.seed.floats(), gradient));
  const std::vector<double> sums = loss.error.read_sums();
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const std::string number = "." + std::to_string(i);
    CHECK(sums[i] == Approx(golden["loss" + number][0]).epsilon(1e-5));
    CHECK(batch.input.samples[i].c_noise == Approx(golden["time" + number][0]).epsilon(1e-6));
  }
}

TEST_CASE("flow: times are logit-normal, shifted, for videos once more, and clamped") {
  DiffusionRecipe recipe =
      read_recipe("diffusion: {process: flow, p_mean: 0.4, p_std: 0.8}").diffusion;
  const StepLevels levels(recipe, 3, 5, 16);
  std::vector<int> strata(16);
  for (std::size_t i = 0; i < 16; ++i) {
    const double t = levels.at(i, "sample" + std::to_string(i));
    const double z = (std::log(t / (1 - t)) - 0.4) / 0.8;
    ++strata[static_cast<std::size_t>(16 * 0.5 * std::erfc(-z / std::sqrt(2.0)))];
  }
  CHECK(std::ranges::all_of(strata, [](int n) { return n == 1; }));
  CHECK(sample_level(recipe, 0.25, 16) == 0.25);
  recipe.shift = 3;
  CHECK(sample_level(recipe, 0.25, 16) == Approx(0.5));
  recipe.scale_video_noise = true;
  CHECK(sample_level(recipe, 0.25, 1) == Approx(0.5));
  CHECK(sample_level(recipe, 0.25, 16) == Approx(0.8));  // sigma 1/3, times 3, times 4
  CHECK(sample_level(recipe, 1, 16) == 1);
  CHECK(sample_level(recipe, 1e-9, 1) == 0.001);
  // Given frames have times of their own.
  for (std::uint32_t step = 0; step < 50; ++step) {
    const double t = draw_condition(recipe, Random(1, Purpose::condition, step, 1), 3).level;
    CHECK((t >= 0.001 && t < 1));
  }
}

TEST_CASE("flow: latents have deviation 1, and a scale that does not depend on the process") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const Recipe flow = read_recipe(kFlow);
  const auto edm_data = open_latents(folder.path, "train"),
             flow_data = open_latents(folder.path, "train", flow.diffusion);
  CHECK(edm_data->facts() == flow_data->facts());
  const CleanSample a = edm_data->read(1), b = flow_data->read(1);
  REQUIRE(a.x0.size() == b.x0.size());
  for (std::size_t i = 0; i < a.x0.size(); ++i)
    CHECK(b.x0[i] == 2 * a.x0[i]);
  // So do made-up ones.
  MadeUpLatents made{.sizes = {{1, 2, 2}}, .channels = 2, .text_tokens = 1, .text_width = 2};
  const float half = make_up_latents(made)->read(0).x0[0];
  made.process = Process::flow;
  CHECK(make_up_latents(made)->read(0).x0[0] == 2 * half);
}

TEST_CASE("flow: a recipe's process decides the defaults of noise levels, wherever it stands") {
  const Recipe flow = read_recipe(kFlow), edm;
  CHECK(flow.diffusion.sigma_min == 0.001);
  CHECK(flow.diffusion.sigma_max == 1);
  CHECK(flow.validation.sigmas == std::vector<double>{0.1, 0.3, 0.5, 0.7, 0.9});
  const Recipe own = read_recipe(
      "validation: {sigmas: [0.25]}\ndiffusion: {sigma_max: 0.9, process: flow, shift: 3}");
  CHECK(own.validation.sigmas == std::vector<double>{0.25});
  CHECK(own.diffusion.sigma_max == 0.9);
  CHECK(own.diffusion.sigma_min == 0.001);
  // Back again it is as it was.
  Recipe back = flow;
  set_process(back, Process::edm);
  CHECK(to_json(back) == to_json(edm));
  CHECK(to_yaml(make_recipe(parse_yaml(to_yaml(own), "printed"))) == to_yaml(own));
  CHECK(explained_yaml(flow, parse_yaml(kFlow, "'r.yaml'"), "")
            .find("  sigma_max: 1.0                         # default\n") != std::string::npos);
  // A recipe of EDM says nothing of it.
  CHECK_FALSE(to_json(edm)["diffusion"].contains("process"));
  CHECK_FALSE(to_json(edm)["diffusion"].contains("shift"));
  CHECK_FALSE(to_json(edm)["sampling"].contains("shift"));
  CHECK(to_json(own)["diffusion"]["process"] == "flow");
  CHECK(changed_settings(to_json(edm), flow)[0] == "diffusion.process: \"edm\" -> \"flow\"");
  CHECK(changed_settings(to_json(own), flow, Compared::kept_by_stages).empty());
  CHECK(changed_settings(to_json(edm), flow, Compared::kept_by_stages).size() == 1);
  // What a next stage changes, though a default is not written.
  const auto changes = recipe_changes(to_json(own), to_json(flow));
  CHECK(std::ranges::count(changes, "diffusion.shift: 3.0 -> (default)") == 1);
  CHECK(recipe_changes(to_json(flow), to_json(own)).size() == 3);
}

TEST_CASE("flow: noise levels and keys that a process does not have are refused") {
  CHECK(refusal("diffusion: {process: ddpm}").find("must be one of edm, flow") !=
        std::string::npos);
  for (const char* text : {"diffusion: {process: flow, sigma_max: 80}",
                           "diffusion: {process: flow}\nvalidation: {sigmas: [0.5, 3]}"}) {
    INFO(text);
    CHECK(refusal(text).find("'diffusion.process' is flow: its highest noise level is 1") !=
          std::string::npos);
  }
  for (const char* text : {"diffusion: {shift: 3}", "sampling: {shift: 3}",
                           "diffusion: {process: flow}\nsampling: {sigma_min: 0.1}",
                           "diffusion: {process: flow}\nsampling: {sigma_max: 0.9}"}) {
    INFO(text);
    CHECK(refusal(text).find("and 'diffusion.process' is ") != std::string::npos);
  }
}

TEST_CASE("given frames are refused of a network that takes them without a mark") {
  CHECK(refusal("model: {type: wan}\ndiffusion: {condition_frames: [0, 1]}")
            .find("'diffusion.condition_frames' is [0,1], and 'model.type' is wan: training with "
                  "given frames works") != std::string::npos);
  CHECK(read_recipe("model: {type: wan}").diffusion.process == Process::flow);
  CHECK(read_recipe("diffusion: {condition_frames: [0, 1]}").diffusion.video_to_world());
}

TEST_CASE("flow: an architecture says its process, and a model to begin from has its own") {
  const MadeUpNetwork made;
  const Recipe plain = read_recipe("model: {type: made-up}");
  CHECK(plain.diffusion.process == Process::flow);
  CHECK(plain.validation.sigmas.back() == 0.9);
  CHECK_FALSE(to_json(plain)["diffusion"].contains("process"));
  const Recipe chosen = read_recipe("model: {type: made-up}\ndiffusion: {process: edm}");
  CHECK(chosen.diffusion.sigma_max == 80);
  CHECK(to_json(chosen)["diffusion"]["process"] == "edm");
  CHECK(to_yaml(read_recipe(to_yaml(chosen))) == to_yaml(chosen));

  Beginning beginning;
  beginning.model = made.config();
  beginning.facts.sampling.process = Process::flow;
  beginning.diffusion.shift = 5;
  const Recipe begun = make_recipe({}, &beginning);
  CHECK(begun.diffusion.process == Process::flow);
  CHECK(begun.diffusion.shift == 5);
  CHECK(begun.diffusion.sigma_max == 1);
  const auto begin = [&](const char* text) {
    const auto settings = parse_yaml(text, "'r.yaml'");
    return usage_error([&] { make_recipe(settings, &beginning); });
  };
  CHECK(
      begin("diffusion: {process: edm}")
          .find("'diffusion.process' is edm, but the model to begin from was trained with flow") !=
      std::string::npos);
  beginning.facts.sampling.process = Process::edm, beginning.diffusion.shift = 1;
  CHECK(make_recipe({}, &beginning).diffusion.process == Process::edm);
  CHECK(begin(kFlow).find("is flow, but the model to begin from was trained with edm: set it") !=
        std::string::npos);
}

TEST_CASE("flow: a checkpoint says its process, and is sampled with the shift of its training") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  const auto facts = [&](const std::string& text, const models::SamplingFacts& base) {
    const Recipe recipe = read_recipe(text);
    const auto data = open_latents(folder.path, "train", recipe.diffusion);
    return generation_facts(recipe, *data, {.sampling = base}).value("sampling", Json());
  };
  CHECK(facts("", {}).is_null());
  CHECK(facts(kFlow, {}) == Json{{"process", "flow"}});
  const char* const shifted = "diffusion: {process: flow, shift: 3}";
  CHECK(facts(shifted, {}) == Json{{"process", "flow"}, {"shift", 3.0}});
  CHECK(facts(std::string(shifted) + "\nsampling: {shift: 7, steps: 4}", {}) ==
        Json{{"steps", 4}, {"process", "flow"}, {"shift", 7.0}});
  const models::SamplingFacts base{
      .sampler = models::Sampler::lcm, .process = Process::flow, .shift = 5};
  CHECK(facts(shifted, base) == Json{{"process", "flow"}, {"sampler", "lcm"}, {"shift", 3.0}});
  const auto read = [](const Json& sampling) {
    return models::ModelFacts::from_json({{"sampling", sampling}}, "it", models::FactsFor::training)
        .sampling;
  };
  CHECK(read({{"process", "flow"}, {"shift", 3.0}}).process == Process::flow);
  CHECK(read({{"steps", 4}}).process == Process::edm);
  CHECK_THROWS(read({{"process", "vp"}}));
  CHECK_THROWS(read({{"process", "flow"}, {"sampler", "heun"}}));
}

TEST_CASE("flow: a tiny network learns by it, with levels of its own in validation") {
  const TemporaryFolder folder;
  write_latents(folder.path);
  Recipe recipe = tiny_recipe(
      "diffusion: {process: flow, shift: 2}\nvalidation: {sigmas: [0.3, 0.9]}\ntrain: {steps: 40}");
  const auto set = open_latents(folder.path, "train", recipe.diffusion);
  set->fit(recipe);
  const std::unique_ptr<dist::World> self = dist::self_world();
  Trainer trainer(recipe, *set, *self);
  Validation validation(recipe, *set, "train");
  const Json before = validation.run(trainer.objective(), trainer.parallel());
  CHECK(before["val_sigmas"].size() == 2);
  CHECK(before["val_sigmas"].contains("0.9"));
  for (int step = 0; step < 40; ++step)
    trainer.train_step();
  CHECK(validation.run(trainer.objective(), trainer.parallel())["val_loss"].get<double>() <
        0.9 * before["val_loss"].get<double>());
}
