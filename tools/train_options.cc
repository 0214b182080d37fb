// SPDX-License-Identifier: Apache-2.0
#include "train_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "io/file.h"
#include "ops/gpu_options.h"
#include "tensor/device.h"
#include "tensor/graph_cache.h"
#include "train/data/blend.h"
#include "train/encoded/clip_fields.h"
#include "train/kind.h"
#include "train/state/beginning.h"

using namespace vfm;

namespace {

/// Gives an option its paragraph in the manual, or refers to vfm-train(1).
cli::OptionRow& explain(cli::OptionRow& row, bool full, const char* paragraph) {
  return full ? row.manual(paragraph) : row.explained_in("vfm-train(1)");
}

}  // namespace

void TrainingOptions::add_recipe(cli::Options& options) {
  options.add("RECIPE", recipe, "RECIPE.yaml", "what to train and how, in YAML")
      .check(cli::not_empty)
      .shown("")
      .everyday();
  options.add("SETTING", settings, "KEY=VALUE", "a key of the recipe, such as train.steps=2000")
      .everyday();
}

void TrainingOptions::add_data(cli::Options& options) {
  options.group("Data");
  cli::OptionRow& data = options.add("--data", data_, "DIR",
                                     "train on these latents or clips; repeat it to blend folders");
  data.repeated().check(cli::not_empty).everyday();
  cli::OptionRow& made_up =
      options.add("--synthetic", synthetic_, "FxHxW,...",
                  "train on made-up latents of these sizes, to measure a machine");
  made_up.shown("").excludes(data).everyday();
  explain(
      data, full_,
      "Train on the latents that *vfm-pack*(1) wrote. With *--tokenizer*, or with "
      "_model.type: tokenizer_, train on the clips that *vfm-shard*(1) wrote. Repeat the option "
      "to blend several folders of latents. This option replaces _data.folders_.");
  explain(made_up, full_,
          "Use made-up latents of these sizes (frames, height, width), in turn, with 512 text "
          "tokens each. The recipe sets channels and text width, by default 16 and 1024. An "
          "*autoregressive* model gets codes of its vocabulary, by default 64,000. A *tokenizer* "
          "gets clips of these sizes in pixels, such as 17x256x256.");
  add_encoders(options);
}

void TrainingOptions::add_encoders(cli::Options& options) {
  const auto add = [&](const char* name, std::string& value, const char* type, const char* help,
                       const char* paragraph) -> cli::OptionRow& {
    cli::OptionRow& row = options.add(name, value, type, help);
    row.check(cli::not_empty).shown("");
    return explain(row, full_, paragraph);
  };
  add("--tokenizer", run.encoders.tokenizer, "builtin:wavelet|builtin:fsq|DIR|FILE.json",
      "encode the clips of --data during training",
      "Encode the clips of *--data* during training, with a tokenizer that *vfm-pack*(1) takes. "
      "If the value is a _latents.json_, the tokenizer, mean and deviation are read from it. A "
      "discrete tokenizer needs _model.type: autoregressive_.")
      .everyday();
  add("--text", run.encoders.text, "builtin:hash|DIR",
      "with --tokenizer: encode captions that have no embedding",
      "With *--tokenizer*: encode captions without an embedding, up to 512 tokens, with an encoder "
      "of *vfm-embed*(1). Without this option, such clips are trained on without text. Existing "
      "embeddings must be from the same encoder. On several hosts the weights are read once, and "
      "stay in the memory of each host if it has room.");
  add("--latent-scale", run.encoders.scale, "FILE.json",
      "with --tokenizer: mean and deviation of latents",
      "With *--tokenizer*: take the mean and deviation of latents from a _latents.json_, or from a "
      "file with _mean_ and _std_. Default: the values of the model to begin from, else of the "
      "tokenizer, else values that are measured on up to 1,024 clips when the run begins.");
}

void TrainingOptions::add_beginning(cli::Options& options, bool stages) {
  options.group("Model to begin from");
  cli::OptionRow& init =
      options.add("--init", run.init, "DIR", "begin from this run, checkpoint or diffusers folder");
  init.check(cli::not_empty).shown("").everyday();
  cli::OptionRow& lora = options.add("--init-lora", init_lora_, "auto|continue|merge",
                                     "continue the adapters of --init, or merge them");
  lora.one_of({"auto", "continue", "merge"});
  explain(
      init, full_,
      "Begin from a run of *vfm-train*, one of its checkpoints, or another model (FINE-TUNING). "
      "_DIR_ sets the keys of the model. A recipe or tensors that differ from these keys are "
      "refused.");
  explain(lora, full_,
          "*continue* trains the adapters of *--init* further. *merge* merges them into the "
          "weights. *auto* is *continue* if the recipe has a _lora.rank_, else *merge*.");
  if (stages) {
    cli::OptionRow& next = options.add("--continue", run.earlier, "RUN",
                                       "continue this run or checkpoint as a new stage");
    next.check(cli::not_empty).shown("").excludes(init).excludes(lora).everyday();
    explain(next, full_,
            "Train this run, or one of its checkpoints, further as a new stage in *-o*. The recipe "
            "of this run gives the defaults. Set only keys that change.");
  }
  cli::OptionRow& base = options.add("--base", run.init_under, "DIR",
                                     "the model under adapters, if its folder has moved");
  base.check(cli::not_empty).shown("");
  explain(base, full_, "The folder of the model under the adapters of a run, if it has moved.");
}

void TrainingOptions::check() {
  // Without a recipe, the first argument is a setting.
  if (recipe.find('=') != std::string::npos && !io::file_exists(recipe)) {
    settings.insert(settings.begin(), std::move(recipe));
    recipe.clear();
  }
  train::parse_overrides(settings);
  if (!synthetic_.empty()) run.synthetic = train::parse_sizes(synthetic_);
}

void TrainingOptions::need_recipe() const {
  if (recipe.empty() && run.earlier.empty())
    fail_usage("give a recipe, such as recipe.yaml; vfm-recipe(5) has its keys");
}

std::vector<train::Setting> TrainingOptions::read(bool first) {
  std::vector<train::Setting> all = train::read_settings(recipe, settings);
  std::optional<train::Beginning> beginning;
  if (!run.init.empty() || !run.earlier.empty()) {
    run.go_on_adapters =
        init_lora_ == "continue" || (init_lora_ == "auto" && train::sets_adapters(all));
    beginning = train::read_beginning(run, train::kind_of(all).pipeline_part(), first);
    run.base = beginning->facts;
  }
  run.recipe = train::make_recipe(all, beginning ? &*beginning : nullptr);
  train::settle_folders(run, data_);
  train::check_clip_options(run);
  return all;
}

std::vector<std::string> TrainingOptions::arguments() const {
  std::vector<std::string> words;
  if (!recipe.empty()) words.push_back(recipe);
  words.insert(words.end(), settings.begin(), settings.end());
  return words;
}

std::vector<std::string> TrainingOptions::data_arguments() const {
  std::vector<std::string> words;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  for (const std::string& folder : data_)
    add("--data", folder);
  add("--synthetic", synthetic_);
  add("--tokenizer", run.encoders.tokenizer);
  add("--text", run.encoders.text);
  add("--latent-scale", run.encoders.scale);
  add("--init", run.init);
  if (init_lora_ != "auto") add("--init-lora", init_lora_);
  add("--continue", run.earlier);
  add("--base", run.init_under);
  return words;
}

void TrainingOptions::need_data() const {
  if (run.data.empty() && run.synthetic.empty())
    fail_usage("give --data DIR, the folder that {} wrote",
               train::kind_of(run.recipe.model.type).data_tool());
}

void RankOptions::add(cli::Options& options) {
  options.group("Computing");
  device.add(options);
  cli::OptionRow& threads = options.add("-j,--jobs", jobs, "N", "threads of each process");
  threads.in(1, 4096).shown("processors/processes").everyday();
  explain(threads, full_,
          "Number of threads of each process. With another number, sums of wide models round "
          "differently. The default counts the processors to which a launcher bound the process, "
          "or all processors of the machine.");
  compute.add(options);
  limits.add(options);
}

void RankOptions::add_graphs(cli::Options& options) {
  options.group("Computing");
  explain(
      options.flag("--no-cuda-graph", no_graphs_,
                   "on a GPU: launch each kernel of a step "
                   "separately"),
      full_,
      "On a GPU, launch each kernel of a step separately. Without this option, a diffusion model "
      "repeats steps of a known shape as CUDA graphs, with the same results.");
}

void RankOptions::apply(train::RunOptions& run, const cli::Context& context) const {
  const cli::Launch& launch = context.launch;
  limits.apply();
  run.device = run.gpu != nullptr ? run.gpu->device()
                                  : dist::rank_device(device.device, launch.local_rank,
                                                      launch.local_ranks, launch.shown_gpu);
  run.local_ranks = std::max(1, launch.local_ranks);
  run.threads = dist::threads_per_rank(jobs, launch.ranks, launch.local_ranks);
  ops::set_gpu_options(run.device, compute.deterministic, compute.attention, context.cache);
  GraphCache::allow(!no_graphs_);
}

void prepare(TrainingOptions& training, const RankOptions& ranks, const cli::Context& context,
             dist::World& world) {
  on_all_ranks(world, [&] {
    training.read(world.rank() == 0);
    training.need_data();
    train::check_size(training.run.recipe);
    if (world.rank() == 0) train::warn_of_clip_settings(training.run);
    ranks.apply(training.run, context);
  });
  world.silent_limit(training.run.recipe.train.silent_limit);
  world.section("setup", training.run.recipe.train.setup_limit);
  world.use_device(training.run.device, ranks.compute.deterministic);
}

cli::OptionRow& add_gpu(cli::Options& options, std::optional<std::string>& gpu) {
  return options
      .add("--gpu", gpu, "a100|h100|h200|b200|gb200|l40s|FILE.json", "predict for this kind of GPU")
      .everyday();
}

void tell(const Json& result, const std::string& words) {
  cli::print(dump_json(result) + "\n");
  cli::say(words);
}
