// Runs that continue others as their next stage.
// SPDX-License-Identifier: Apache-2.0
#include "train/state/next_stage.h"

#include <fcntl.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "io/safetensors_reader.h"
#include "latents_fixture.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_model.h"
#include "models/folder/load_tensors.h"
#include "support/usage_error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/pack_order.h"
#include "train/kind.h"
#include "train/recipe/parallel_fields.h"
#include "train/state/beginning.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;
namespace fs = std::filesystem;

namespace {

void train_on(int ranks, const RunOptions& options) {
  const int fd = ::open("/dev/null", O_WRONLY);
  io::ManifestWriter manifest(fd);
  dist::thread_worlds(ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    run(options, world, manifest, no_progress());
  });
  ::close(fd);
}

/// A folder for the runs of a test, with data of two sorts.
struct Runs {
  TemporaryFolder folder;
  Runs() {
    write_latents(path("data"));
    write_latents(path("large"), {.samples = 15, .mixed = true});
  }
  std::string path(const std::string& name) const { return folder.path + "/" + name; }

  void train(const std::string& out, const std::string& settings,
             const std::string& data = "data") const {
    RunOptions options;
    options.recipe = tiny_recipe("schedule: {warmup: 0}\n" + settings);
    options.data = path(data);
    options.out = path(out);
    train_on(1, options);
  }
  RunOptions stage(const std::string& earlier, const std::string& out, const std::string& settings,
                   const std::string& data = "data") const {
    RunOptions options;
    options.data = path(data);
    options.out = path(out);
    options.earlier = earlier.empty() ? "" : path(earlier);
    const Beginning beginning = read_beginning(options, "transformer");
    options.base = beginning.facts;
    options.recipe = make_recipe(parse_yaml(settings, "stage"), &beginning);
    return options;
  }
  void go_on(const std::string& earlier, const std::string& out, const std::string& settings,
             const std::string& data = "data", int ranks = 1) const {
    train_on(ranks, stage(earlier, out, settings, data));
  }
  std::string newest(const std::string& run) const { return models::find_checkpoint(path(run)); }
  Json train_json(const std::string& run) const { return models::read_train_json(newest(run)); }
  /// The lines of metrics that have the key.
  std::vector<Json> metrics(const std::string& run, const char* key) const {
    std::vector<Json> lines;
    std::istringstream text(io::read_file(path(run) + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);)
      if (Json record = Json::parse(line); record.contains(key)) lines.push_back(std::move(record));
    return lines;
  }
};

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const std::string& folder, const char* name) {
  const io::SafetensorsReader set(folder, name);
  Values values;
  for (const io::TensorView& view : set.tensors()) {
    const Tensor tensor(view.shape, models::float_type(view.dtype));
    set.read(view.name, {view.shape, Shape(view.shape.size(), 0), view.shape}, 0,
             {tensor.data<std::byte>(), tensor.bytes()});
    const Tensor floats = tensor.to(DType::f32);
    values[view.name] = {floats.floats().begin(), floats.floats().end()};
  }
  return values;
}

/// Weights, moments and average.
std::map<std::string, Values> tensors_of(const std::string& checkpoint) {
  std::map<std::string, Values> all;
  all["model"] = values_of(checkpoint + "/model", models::kWeightsName);
  for (const char* name : {"adam_m", "adam_v", "ema"})
    if (io::file_exists(checkpoint + "/state/" + name + ".safetensors"))
      all[name] = values_of(checkpoint + "/state", name);
  return all;
}

}  // namespace

TEST_CASE("adapters that a run goes on with are read by one rank for all") {
  const Runs runs;
  runs.train("base", "train: {steps: 1}");
  RunOptions options;
  options.data = runs.path("data");
  options.init = runs.path("base");
  options.out = runs.path("adapters");
  const Beginning beginning = read_beginning(options, "transformer");
  options.base = beginning.facts;
  options.recipe =
      make_recipe(parse_yaml("lora: {rank: 2}\ntrain: {steps: 1}\n", "lora"), &beginning);
  train_on(1, options);

  options.init = options.out;
  const models::LoraFile lora = models::open_adapters(runs.newest("adapters"), true);
  const models::ModelFolder base(runs.path("base"), {.average = true});
  const auto parameters_of = [](const io::TensorSet& set) {
    std::vector<nn::Parameter> parameters;
    for (const io::TensorView& tensor : set.tensors()) {
      nn::Parameter& parameter = parameters.emplace_back();
      parameter.name = tensor.name;
      parameter.value = Tensor::zeros(tensor.shape);
      parameter.placement = nn::cut_part(tensor.shape, nn::Cut()).placement;
    }
    return parameters;
  };
  const auto list_of = [](std::vector<nn::Parameter>& parameters) {
    nn::ParameterList list;
    for (nn::Parameter& parameter : parameters)
      list.push_back(&parameter);
    return list;
  };
  const auto sent_by = [&](bool go_on) {
    options.go_on_adapters = go_on;
    std::atomic<std::int64_t> sent = 0;
    dist::thread_worlds(3, [&](dist::World& world) {
      std::vector<nn::Parameter> weights = parameters_of(base.tensors()),
                                 adapters = parameters_of(lora.tensors());
      load_initial(world, options, list_of(weights), list_of(adapters));
      sent += world.traffic().of("world").bytes;
      for (const nn::Parameter& parameter : adapters) {
        const Tensor expected = models::read_floats(*lora.tensors().find(parameter.name));
        if (go_on && !std::ranges::equal(parameter.value.floats(), expected.floats()))
          fail("'{}' has other values", parameter.name);
      }
    });
    return sent.load();
  };
  // Each byte that one rank reads goes to the two others.
  CHECK(sent_by(true) >= sent_by(false) + 2 * static_cast<std::int64_t>(lora.bytes()));
}

TEST_CASE("of a model to begin from one rank alone need open the weights to know the recipe") {
  const Runs runs;
  runs.train("base", "train: {steps: 1}");
  RunOptions options;
  options.init = runs.path("base");
  fs::resize_file(runs.newest("base") + "/state/ema.safetensors", 10);
  CHECK_THROWS_AS(read_beginning(options, "transformer"), Error);
  CHECK(read_beginning(options, "transformer", false).facts.text_padding == 0);
}

TEST_CASE("a stage that changes nothing goes on as the run would have, to the last bit") {
  const Runs runs;
  write_latents(runs.path("codes"), {.vocabulary = 23});
  const std::string tables = "model: {max_size: [4, 8, 8], type: ";
  const std::map<std::string, std::string> types = {
      {"dit", tables + "dit}"},
      {"stdit", tables + "stdit}"},
      {"moviegen", tables + "moviegen}"},
      {"bf16", tables + "dit, compute: bf16}\noptimizer: {moments: bf16}\nema: {mode: power}"},
      {"off", tables + "dit}\nema: {mode: off}"},
      {"codes", "model: {type: autoregressive, num_key_value_heads: 1}"}};
  for (const auto& [name, settings] : types) {
    INFO(name);
    const std::string data = name == "codes" ? "codes" : "data";
    const auto begin = [&, &settings = settings](const std::string& out, int steps) {
      std::vector<Setting> all = parse_yaml(settings + "\n", "type");
      const std::string more = fmt::format(
          "model: {{num_attention_heads: 2, attention_head_dim: 12, num_layers: 2}}\n"
          "data: {{tokens: 32, packs: 3, window: 8}}\noptimizer: {{lr: 0.003}}\n"
          "schedule: {{warmup: 0}}\nvalidation: {{every: 0}}\ntrain: {{steps: {}}}",
          steps);
      for (Setting& setting : parse_yaml(more, "recipe"))
        all.push_back(std::move(setting));
      RunOptions options;
      options.recipe = make_recipe(all);
      options.data = runs.path(data);
      options.out = runs.path(out);
      train_on(1, options);
    };
    begin(name + "4", 4);
    begin(name + "7", 7);
    const std::string next = name + "-next";
    runs.go_on(name + "4", next, "train: {steps: 3}", data);
    CHECK(tensors_of(runs.newest(next)) == tensors_of(runs.newest(name + "7")));
    CHECK(runs.newest(next).ends_with("step-00000007"));
    CHECK(runs.train_json(next)["state"] == runs.train_json(name + "7")["state"]);
  }
}

TEST_CASE("a stage on other data begins with the earlier run's validation and moments") {
  const Runs runs;
  runs.train("run", "train: {steps: 6}");
  runs.go_on("run", "next",
             "data: {tokens: 80, packs: 2}\noptimizer: {lr: 0.01}\nmodel: {rope_scale: [2, 2, 2]}\n"
             "validation: {every: 1}\ntrain: {steps: 1}",
             "large");
  // The same by hand: the old checkpoint in a model of the new recipe, on the new data.
  const RunOptions options = runs.stage("next", "unused", "", "large");
  const Kind& kind = kind_of("dit");
  const auto data = kind.open(options, "train"), held_out = kind.open(options, "val");
  Recipe recipe = options.recipe;
  data->fit(recipe);
  CHECK(recipe.model.dit.own<models::DitFields>().rope_scale == std::array{2.0, 2.0, 2.0});
  const auto world = dist::self_world();
  Trainer trainer(recipe, *data, *world);
  read_checkpoint(*world, runs.newest("run"), trainer.optimizer());
  RunState state = RunState::from_json(runs.train_json("run")["state"], "state");
  state.data = {};
  trainer.restore(state);
  trainer.swap_ema();
  Validation validation(recipe, *held_out, "val");
  const Json expected = validation.run(trainer.objective(), trainer.parallel());
  trainer.swap_ema();
  const std::vector<Json> lines = runs.metrics("next", "val_loss");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["step"] == 6);
  CHECK(lines[0]["val_loss"] == expected["val_loss"]);
  CHECK(lines[0]["val_sigmas"] == expected["val_sigmas"]);
  CHECK(lines[1]["step"] == 7);

  const StepResult step = trainer.train_step(false);
  double squares = 0;
  for (const nn::Parameter* p : trainer.objective().parameters())
    for (const float g : p->grad.floats())
      squares += std::pow(g / step.loss.elements(), 2);
  const double clip = std::min(1.0, recipe.optimizer.clip / std::sqrt(squares));
  const auto before = tensors_of(runs.newest("run")), after = tensors_of(runs.newest("next"));
  const double b1 = recipe.optimizer.beta1, b2 = recipe.optimizer.beta2, lr = 0.01;
  const double c1 = 1 - std::pow(b1, 7), c2 = 1 - std::pow(b2, 7);  // the seventh update
  double moved = 0, without = 0;
  for (const nn::Parameter* p : trainer.objective().parameters()) {
    const double decay = p->decay ? recipe.optimizer.weight_decay : 0;
    for (std::size_t i = 0; i < p->grad.floats().size(); ++i) {
      const double g = p->grad.floats()[i] / step.loss.elements() * clip;
      const double m = b1 * before.at("adam_m").at(p->name)[i] + (1 - b1) * g;
      const double v = b2 * before.at("adam_v").at(p->name)[i] + (1 - b2) * g * g;
      const double w = before.at("model").at(p->name)[i];
      const double expect = w * (1 - lr * decay) - lr * (m / c1) / (std::sqrt(v / c2) + 1e-8);
      const double made = after.at("model").at(p->name)[i];
      if (std::abs(made - expect) > 1e-6 + 1e-5 * std::abs(w))
        FAIL_CHECK(p->name << " " << i << ": " << made << ", not " << expect);
      moved += std::abs(made - w);
      without += std::abs(lr * (g > 0 ? 1 : g < 0 ? -1 : 0) - (w - made));  // as with no moments
    }
  }
  CHECK(moved > 0);
  CHECK(without > 0.1 * moved);
  CHECK(step.loss.mean() == Approx(runs.metrics("next", "loss")[0]["loss"].get<double>()));
}

namespace {

/// The average of numbers that stay the same is rounded now and then.
void check_same(const std::string& checkpoint, const std::string& other) {
  auto tensors = tensors_of(checkpoint), expected = tensors_of(other);
  for (const auto& [name, values] : expected["ema"])
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::abs(tensors["ema"][name][i] - values[i]) > 1e-6f)
        FAIL_CHECK("average of " << name << " " << i);
  tensors.erase("ema"), expected.erase("ema");
  CHECK(tensors == expected);
}

}  // namespace

TEST_CASE("tables of positions grow as if the run had begun with them") {
  const Runs runs;
  for (const char* type : {"dit", "moviegen"}) {
    INFO(type);
    const std::string settings =
        std::string("model: {type: ") + type +
        ", num_attention_heads: 2, attention_head_dim: 12, "
        "num_layers: 1}\ndata: {tokens: 16, packs: 3}\nschedule: {warmup: 0}\n"
        "optimizer: {clip: 0}\nvalidation: {every: 0}\ntrain: {steps: 4}\n";
    const auto begin = [&](const std::string& out, const char* size) {
      RunOptions options;
      std::vector<Setting> all = parse_yaml(settings, "recipe");
      all.push_back(parse_override(std::string("model.max_size=") + size));
      options.recipe = make_recipe(all);
      options.data = runs.path("data");
      options.out = runs.path(type + out);
      train_on(1, options);
    };
    const std::string name = type;
    begin("small", "[2, 4, 6]");
    begin("large", "[4, 8, 8]");
    const char* more = "model: {max_size: [4, 8, 8]}\ndata: {tokens: 80}\ntrain: {steps: 3}";
    runs.go_on(name + "small", name + "grown", more, "large");
    runs.go_on(name + "large", name + "as-large", more, "large");
    check_same(runs.newest(name + "grown"), runs.newest(name + "as-large"));
    // Ranks that keep stretches of the state read the same: what they save is what one reads.
    RunOptions options = runs.stage(name + "small", "unused", more, "large");
    std::map<std::string, std::map<std::string, Values>> saved;
    for (const ShardKind shard : {ShardKind::none, ShardKind::optimizer, ShardKind::full}) {
      options.recipe.parallel.shard = shard;
      const std::string out = runs.path(name + std::string(shard_name(shard)));
      dist::thread_worlds(shard == ShardKind::none ? 1 : 3, [&](dist::World& world) {
        omp_set_num_threads(1);
        const auto data = kind_of(name).open(options, "train");
        Recipe recipe = options.recipe;
        data->fit(recipe);
        Trainer trainer(recipe, *data, world);
        read_checkpoint(world, runs.newest(name + "small"), trainer.optimizer(),
                        Tables::may_be_longer);
        write_checkpoint(trainer.parallel().mesh(), out,
                         {.step = 1, .config = {}, .train = {}, .optimizer = trainer.optimizer()});
      });
      saved[std::string(shard_name(shard))] = tensors_of(checkpoint_path(out, 1));
    }
    CHECK(saved["optimizer"] == saved["none"]);
    CHECK(saved["full"] == saved["none"]);
    check_same(checkpoint_path(runs.path(name + "none"), 1), runs.newest(name + "large"));
  }
}

TEST_CASE("with the same data a stage goes on at its place, with others at the beginning") {
  const Runs runs;
  runs.train("run", "data: {packs: 1}\ntrain: {steps: 3}");
  const auto world = dist::self_world();
  const auto place = [&](const char* settings, const char* data) {
    const RunOptions options = runs.stage("run", "unused", settings, data);
    const auto set = kind_of("dit").open(options, "train");
    Recipe recipe = options.recipe;
    set->fit(recipe);
    return place_after(find_earlier(*world, options, *set), options, *set, recipe);
  };
  const Json state = runs.train_json("run")["state"];
  const DataPosition same = place("data: {packs: 2}", "data");
  CHECK(same.epoch == state["epoch"]);
  CHECK(same.pack == state["pack"]);
  CHECK(same.pack > 0);
  const DataPosition other = place("data: {tokens: 80}", "large");
  CHECK(other.epoch == 0);
  CHECK(other.pack == 0);
  // Packs of four images or two videos, and of more than one of the earlier ones.
  const RunOptions options = runs.stage("run", "unused", "data: {tokens: 8}");
  const auto set = kind_of("dit").open(options, "train");
  const auto seen = [&](const DataPosition& position, std::int64_t tokens) {
    data::PackingOptions packs = options.recipe.data.pack_options();
    packs.tokens = tokens;
    PackOrder order(set->size(), set->lengths(options.recipe.model), 0, packs);
    order.seek({.epoch = position.epoch, .pack = 0, .block = position.block});
    std::size_t samples = 0;
    while (order.position().pack < position.pack)
      samples += order.next().size();
    return samples;
  };
  const std::size_t before = seen(same, 16);
  const DataPosition shorter = place("data: {tokens: 8}", "data");
  CHECK(shorter.pack > same.pack);
  CHECK(seen(shorter, 8) >= before);
  CHECK(seen(shorter, 8) <= before + 2);
}

TEST_CASE("the schedule and the steps are those of the stage, counters go on") {
  const Runs runs;
  runs.train("run", "train: {steps: 4}");
  runs.go_on("run", "next", "schedule: {warmup: 2, shape: linear}\ntrain: {steps: 5}");
  std::vector<double> rates;
  std::vector<std::int64_t> steps;
  for (const Json& line : runs.metrics("next", "lr")) {
    rates.push_back(line["lr"].get<double>() / 0.003);
    steps.push_back(line["step"].get<std::int64_t>());
  }
  CHECK(steps == std::vector<std::int64_t>{5, 6, 7, 8, 9});
  REQUIRE(rates.size() == 5);
  CHECK(rates[0] == Approx(0.5));
  CHECK(rates[1] == Approx(1));
  CHECK(rates[2] == Approx(1));
  CHECK(rates[3] == Approx(0.5));
  CHECK(rates[4] == Approx(0).margin(1e-12));
  const Json before = runs.train_json("run")["state"], after = runs.train_json("next")["state"];
  CHECK(after["step"] == 9);
  CHECK(after["updates"] == 9);
  CHECK(after["samples"].get<int>() > before["samples"].get<int>());
  CHECK(runs.metrics("next", "tokens")[0]["tokens"].get<int>() > before["tokens"].get<int>());
}

TEST_CASE("what a stage may not change is refused, all keys at once") {
  const Runs runs;
  runs.train("run", "train: {steps: 1}");
  CHECK(usage_error([&] {
          runs.stage("run", "next",
                     "model: {num_layers: 3, max_size: [2, 9, 9], rope_scale: [1, 2, 2]}\n"
                     "diffusion: {condition_frames: [0, 1], p_mean: 1, whitening: 0.5}\n"
                     "data: {tokens: 32}\noptimizer: {beta1: 0.5, lr: 1}\n"
                     "ema: {mode: off}\ntrain: {seed: 4, steps: 9}");
        }) == fmt::format("a stage that continues '{0}' cannot change model.num_layers: 2 -> 3; "
                          "diffusion.whitening: 1.0 -> 0.5; optimizer.beta1: 0.9 -> 0.5; "
                          "ema.mode: \"decay\" -> \"off\"; train.seed: 0 -> 4; "
                          "model.max_size: [4,8,8] -> [2,9,9] (it may only grow); "
                          "diffusion.condition_frames: [0] -> [0,1] (the model has no channel that "
                          "marks given frames); leave these out, or begin a new run from its "
                          "weights alone with --init '{0}'",
                          runs.path("run")));
  // Tables under adapters are not theirs to grow; rotary positions need none.
  Recipe earlier = tiny_recipe(), larger = earlier;
  earlier.lora.rank = larger.lora.rank = 2;
  larger.model.dit.max_size = {4, 9, 9};
  CHECK(kind_of("dit").refused_of_stage(earlier, larger) ==
        std::vector<std::string>{"model.max_size: [4,8,8] -> [4,9,9] (its position tables are "
                                 "those of the model under the adapters)"});
  earlier.model.dit.own<models::DitFields>().learnable_positions =
      larger.model.dit.own<models::DitFields>().learnable_positions = false;
  CHECK(kind_of("dit").refused_of_stage(earlier, larger).empty());
  CHECK_THAT(usage_error([&] { runs.stage("run", "next", "lora: {rank: 2}"); }),
             Catch::Contains("cannot change lora.rank: 0 -> 2; leave it out"));
  CHECK_THAT(usage_error([&] { runs.stage("data", "next", ""); }), Catch::Contains("data'"));
  CHECK_THAT(usage_error([&] { runs.stage("run", "run", ""); }),
             Catch::Contains("needs a folder of its own"));
}

TEST_CASE("a stage goes on where it was: only with the run that it continues, which may be gone") {
  const Runs runs;
  runs.train("run", "train: {steps: 4}");
  runs.train("other", "train: {steps: 4, seed: 1}");
  const std::string change = "data: {tokens: 24}\nvalidation: {every: 2}\n";
  const auto contents = [&](const std::string& run) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(runs.path(run)))
      if (const std::string name = fs::relative(entry.path(), runs.path(run)).string();
          entry.is_regular_file() && !name.starts_with("events.") && name != "timing.jsonl")
        files[name] = io::read_file(entry.path());
    return files;
  };
  runs.go_on("run", "whole", change + "train: {steps: 6, keep: 1}");
  runs.go_on("run", "parts", change + "train: {steps: 2}");
  CHECK_THAT(usage_error([&] { runs.go_on("other", "parts", change); }),
             Catch::Contains("continues '" + runs.newest("run") + "', not"));
  {
    RunOptions options;
    options.recipe = tiny_recipe();
    options.data = runs.path("data");
    options.out = runs.path("parts");
    CHECK_THAT(usage_error([&] { train_on(1, options); }), Catch::Contains("the same --continue"));
    options.out = runs.path("other");
    options.earlier = runs.path("run");
    CHECK_THAT(usage_error([&] { train_on(1, options); }),
               Catch::Contains("is a run that continues none"));
  }
  CHECK_THAT(usage_error([&] { runs.go_on("run", "parts", change + "train: {seed: 3}"); }),
             Catch::Contains("train.seed: 0 -> 3"));
  fs::rename(runs.path("run"), runs.path("moved"));
  runs.go_on("moved", "parts", change + "train: {steps: 4}");
  fs::rename(runs.path("moved"), runs.path("run"));
  fs::rename(runs.path("run"), runs.path("gone"));
  runs.go_on("run", "parts", change + "train: {steps: 6, keep: 1}");
  CHECK(contents("parts") == contents("whole"));
}

TEST_CASE("the history of stages is in the run") {
  const Runs runs;
  runs.train("one", "train: {steps: 2}");
  runs.go_on("one", "two", "data: {tokens: 24}\ntrain: {steps: 3}");
  runs.go_on("two", "three", "optimizer: {lr: 0.001}\ntrain: {steps: 1}");
  CHECK_FALSE(runs.train_json("one").contains("stages"));
  const Json train = runs.train_json("three"), stages = stages_of(train);
  REQUIRE(train["stages"].size() == 2);
  REQUIRE(stages.size() == 3);
  const std::vector<std::pair<int, int>> steps = {{0, 2}, {2, 5}, {5, 6}};
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(stages[i]["first_step"] == steps[i].first);
    CHECK(stages[i]["last_step"] == steps[i].second);
    samples += stages[i]["samples"].get<std::int64_t>();
  }
  CHECK(samples == train["state"]["samples"]);
  CHECK(stages[0]["checkpoint"] == runs.newest("one"));
  CHECK(stages[1]["complete"] == io::hash_file(runs.newest("two") + "/COMPLETE"));
  CHECK(recipe_changes(stages[0]["recipe"], stages[1]["recipe"]) ==
        std::vector<std::string>{"data.tokens: 16 -> 24", "train.steps: 2 -> 3"});
  CHECK(recipe_changes(stages[1]["recipe"], stages[2]["recipe"]) ==
        std::vector<std::string>{"optimizer.lr: 0.003 -> 0.001", "train.steps: 3 -> 1"});
}

TEST_CASE("a stage begins alike on any layout") {
  const Runs runs;
  runs.train("run", "train: {steps: 4}");
  const std::string change = "data: {tokens: 80}\nvalidation: {every: 1}\ntrain: {steps: 2}\n";
  runs.go_on("run", "one", change, "large");
  const Json expected = runs.metrics("one", "val_loss");
  int number = 0;
  for (const char* layout :
       {"{tp: 2}", "{pp: 2}", "{shard: full}", "{cp: 2, cp_kind: gather, shard: optimizer}"}) {
    INFO(layout);
    const std::string out = "ranks" + std::to_string(number++);
    runs.go_on("run", out, change + "parallel: " + layout, "large", 4);
    const std::vector<Json> lines = runs.metrics(out, "val_loss");
    REQUIRE(lines.size() == expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      CHECK(lines[i]["val_loss"].get<double>() ==
            Approx(expected[i]["val_loss"].get<double>()).epsilon(1e-4));
  }
}
