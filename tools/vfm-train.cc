// vfm-train: latents or clips in, a trained video model or tokenizer out.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "dist/world.h"
#include "ops/gpu_options.h"
#include "tensor/device.h"
#include "tensor/graph_cache.h"
#include "train/beginning.h"
#include "train/export.h"
#include "train/kind.h"
#include "train/recipe_file.h"
#include "train/run.h"

namespace {

using namespace vfm;

/// Processors that process `pid` (0: this one) may run on.
int usable_processors(pid_t pid) {
  cpu_set_t set;
  if (::sched_getaffinity(pid, sizeof set, &set) != 0) return 0;
  return CPU_COUNT(&set);
}

/// Without -j: a launcher that binds ranks to processors has chosen; else ranks share the machine.
int threads_per_rank(int jobs, const cli::Launch& launch) {
  if (jobs > 0) return jobs;
  const int mine = usable_processors(0);
  const bool bound = launch.ranks > 1 && mine < usable_processors(::getppid());
  return std::max(1, bound ? mine : mine / std::max(1, launch.local_ranks));
}

class TrainTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Train a video model on latents, or a video tokenizer on clips; or resume where it "
           "stopped.";
  }
  std::string example() const override {
    return "vfm-train recipe.yaml train.steps=2000 --data latents --out run";
  }
  std::string version_details() const override {
    return (dist::has_mpi() ? "MPI: yes\n" : "MPI: no\n") + ops::gpu_versions();
  }
  bool writes_manifest(const cli::Launch& launch) const override {
    return launch.rank == 0 && !dry_run_ && !print_config_;
  }
  bool long_running() const override { return true; }

  void add_options(CLI::App& app) override {
    app.add_option("recipe", recipe_, "what to train and how, in YAML; with --export a run")
        ->type_name("RECIPE.yaml")
        ->check(cli::not_empty)
        ->required();
    app.add_option("settings", settings_, "section.key=value: overrides the recipe")
        ->type_name("KEY=VALUE");
    auto* data = app.add_option("--data", options_.data,
                                "latents that vfm-pack wrote; for a tokenizer, what vfm-shard did")
                     ->type_name("DIR")
                     ->check(cli::not_empty);
    app.add_option("--synthetic", synthetic_,
                   "train on made-up latents or clips of these sizes, to measure a machine")
        ->type_name("FxHxW,...")
        ->excludes(data);
    app.add_option("-o,--out,--output", options_.out, "the run: checkpoints and logs")
        ->type_name("DIR")
        ->check(cli::not_empty)
        ->check(cli::not_file);
    app.add_option("--init", options_.init,
                   "begin from this model: a diffusers folder, or a run or checkpoint of vfm-train")
        ->type_name("DIR")
        ->check(cli::not_empty);
    app.add_option("--init-lora", init_lora_,
                   "--init of a run of adapters: continue them, or merge them into the weights")
        ->type_name("auto|continue|merge")
        ->check(CLI::IsMember({"auto", "continue", "merge"}))
        ->capture_default_str();
    app.add_option("--base", options_.init_under,
                   "of a run of adapters: the model under them, if it has moved")
        ->type_name("DIR")
        ->check(cli::not_empty);
    add_export_options(app);
    device_.add(app);
    input_limits_.add(app);
    compute_.add(app);
    app.add_option("--cuda-graph", cuda_graph_,
                   "on a GPU: repeat steps of a known shape as CUDA graphs, or launch every kernel")
        ->type_name("auto|on|off")
        ->check(CLI::IsMember({"auto", "on", "off"}))
        ->capture_default_str();
    app.add_flag("--force", options_.force, "start over, replacing an earlier run in DIR");
    app.add_flag("--dry-run", dry_run_, "print parameters, FLOPs and memory; train nothing");
    app.add_option("--gpu", gpu_,
                   "with --dry-run: predict the time of a step on one, which need not be here")
        ->type_name("h100|h200|b200");
    app.add_flag("--print-config", print_config_, "print the effective recipe; train nothing");
    report_.add(app, "write a page with the run's curves; of a tokenizer with what it decodes");
    app.add_option("-j,--jobs", jobs_, "threads of each process (default: processors/processes)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
  }

  void check() override {
    options_.gpu = models::chosen_gpu(gpu_, dry_run_, device_.device);
    if (!export_.folder.empty()) return check_export();
    if (const std::string option = given_for_export(); !option.empty())
      fail_usage("{} is for --export", option);
    if (!synthetic_.empty()) options_.synthetic = train::parse_sizes(synthetic_);
    if (dry_run_ || print_config_) return;
    if (options_.out.empty()) fail_usage("--out DIR is needed: where the run is kept");
  }

  long run(cli::Context& context) override {
    if (!export_.folder.empty()) {
      if (context.launch.rank > 0) return 0;
      context.manifest.write(train::export_model(export_));
      return 0;
    }
    read_recipe();
    input_limits_.apply();
    if ((dry_run_ || print_config_) && context.launch.rank > 0) return 0;
    if (print_config_) cli::print(train::to_yaml(options_.recipe));
    if (print_config_ && !dry_run_) return 0;
    options_.device = options_.gpu != nullptr ? Device::cuda : rank_device(context.launch);
    options_.local_ranks = std::max(1, context.launch.local_ranks);
    ops::set_gpu_options(options_.device, compute_.deterministic, compute_.attention,
                         context.cache);
    if (cuda_graph_ == "on" && options_.device == Device::cpu)
      fail_usage("--cuda-graph on is for a GPU, and this run computes on the CPU");
    if (dry_run_) {
      const Json cost = train::training_cost(options_, context.launch.ranks);
      cli::print(dump_json(cost) + "\n");
      cli::say(train::training_words(cost));
      return 0;
    }
    options_.report = report_.path;
    options_.threads = threads_per_rank(jobs_, context.launch);
    GraphCache::allow(cuda_graph_ != "off");
    const auto world = context.launch.ranks > 1 ? dist::mpi_world() : dist::self_world();
    try {
      return train::run(options_, *world, context.manifest, context.progress);
    } catch (const std::exception& error) {
      if (world->size() == 1) throw;
      // The other ranks would wait for this one for ever.
      log_error("{} (rank {} on host {})", error.what(), world->rank(), world->host());
      const auto* known = dynamic_cast<const Error*>(&error);
      world->end_all(known && known->kind() == ErrorKind::usage ? 2 : 1);
      throw;
    }
  }

 private:
  void add_export_options(CLI::App& app) {
    app.add_option("--export", export_.folder,
                   "write the model of a run, given in place of the recipe, for diffusers or peft")
        ->type_name("DIR")
        ->check(cli::not_empty)
        ->check(cli::not_file);
    const auto add = [&](const char* name, std::string& value, const char* help) {
      export_options_.push_back(app.add_option(name, value, help)->type_name("NAME"));
      return export_options_.back();
    };
    add("--weights", weights_, "of --export: ema: averaged weights; model: those of the last step")
        ->check(CLI::IsMember({"ema", "model"}))
        ->capture_default_str();
    add("--lora-mode", lora_mode_, "of --export: adapters merged into the weights, or separate")
        ->check(CLI::IsMember({"merged", "separate"}))
        ->capture_default_str();
    add("--parts", parts_,
        "of --export: a pipeline's text encoder as links or copies; none: the network alone")
        ->check(CLI::IsMember({"link", "copy", "none"}))
        ->capture_default_str();
    add("--tokenizer", export_.tokenizer, "of --export: the tokenizer's folder, if it has moved")
        ->check(cli::not_empty)
        ->type_name("DIR");
    add("--text-encoder", export_.text_encoder,
        "of --export: the text encoder's folder, if it has moved")
        ->check(cli::not_empty)
        ->type_name("DIR");
  }

  /// The recipe, and what stands there that does not go with the options.
  void read_recipe() {
    const std::vector<train::Setting> settings = train::read_settings(recipe_, settings_);
    std::optional<train::Beginning> beginning;
    if (!options_.init.empty()) {
      options_.go_on_adapters =
          init_lora_ == "continue" || (init_lora_ == "auto" && train::sets_adapters(settings));
      beginning = train::read_beginning(options_, train::kind_of(settings).pipeline_part());
      options_.base = beginning->facts;
    }
    options_.recipe = train::make_recipe(settings, beginning ? &*beginning : nullptr);
    const std::string& type = options_.recipe.model.type;
    const train::Kind& kind = train::kind_of(type);
    if (cuda_graph_ == "on" && !kind.has_graphs())
      fail_usage("--cuda-graph on is for diffusion models, and 'model.type' is {}", type);
    if (cuda_graph_ == "on" && options_.recipe.model.offload)
      fail_usage("--cuda-graph on is not for steps with 'model.offload', which graphs do not take");
    if (!dry_run_ && !print_config_ && options_.data.empty() && synthetic_.empty())
      fail_usage("--data DIR is needed: the folder that {} wrote", kind.data_tool());
  }

  /// The first option of --export that was given, or "".
  std::string given_for_export() const {
    for (const CLI::Option* option : export_options_)
      if (option->count() > 0) return option->get_name();
    return {};
  }

  void check_export() {
    if (!options_.data.empty() || !options_.out.empty() || !options_.init.empty() ||
        !settings_.empty() || dry_run_ || print_config_)
      fail_usage(
          "--export goes without --data, --out, --init, settings, --dry-run and --print-config: "
          "vfm-train RUN --export DIR");
    std::error_code error;
    if (!std::filesystem::is_directory(recipe_, error))
      fail_usage("--export needs a run of vfm-train in place of the recipe, and '{}' is none",
                 recipe_);
    export_.run = recipe_;
    export_.average = weights_ == "ema";
    export_.merge = lora_mode_ == "merged";
    export_.under = options_.init_under;
    export_.force = options_.force;
    using Parts = train::ExportOptions::Parts;
    export_.parts = parts_ == "link" ? Parts::link : parts_ == "copy" ? Parts::copy : Parts::none;
  }

  /// Ranks of one machine take a GPU each. What starts them may have shown each its own alone.
  Device rank_device(const cli::Launch& launch) const {
    const bool shown_one = gpu_count() == 1 && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
    if (device_.device != "cpu" && launch.local_ranks > 1 && why_no_gpu().empty())
      use_gpu(shown_one ? 0 : launch.local_rank);
    return choose_device(device_.device);
  }

  std::optional<std::string> gpu_;
  std::string recipe_, synthetic_, cuda_graph_ = "auto", init_lora_ = "auto";
  cli::ReportOptions report_;
  cli::DeviceOptions device_;
  cli::InputLimitOptions input_limits_;
  cli::ComputeOptions compute_;
  std::vector<std::string> settings_;
  train::ExportOptions export_;
  std::string weights_ = "ema", lora_mode_ = "merged", parts_ = "link";
  std::vector<CLI::Option*> export_options_;
  train::RunOptions options_;
  bool dry_run_ = false, print_config_ = false;
  int jobs_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  TrainTool tool;
  return vfm::cli::run(argc, argv, tool);
}
