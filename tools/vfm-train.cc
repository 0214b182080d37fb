// vfm-train: latents or clips in, a trained video model or tokenizer out.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/json.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "ops/gpu_options.h"
#include "tensor/device.h"
#include "tensor/graph_cache.h"
#include "train/beginning.h"
#include "train/blend.h"
#include "train/calibrate/calibrate.h"
#include "train/check_parallel.h"
#include "train/encoded/clip_fields.h"
#include "train/export.h"
#include "train/kind.h"
#include "train/plan/plan.h"
#include "train/recipe_file.h"
#include "train/run.h"

namespace {

using namespace vfm;

class TrainTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Train a video model on latents, or a video tokenizer on clips; or resume where it "
           "stopped.";
  }
  std::string examples() const override {
    return "vfm-train recipe.yaml train.steps=2000 --data latents --out run";
  }
  std::string version_details() const override {
    return (dist::has_mpi() ? "MPI: yes\n" : "MPI: no\n") + ops::gpu_versions();
  }
  bool writes_manifest(const cli::Launch& launch) const override {
    return launch.rank == 0 && !dry_run_ && !print_config_ && !check_parallel_ && !plan_ &&
           calibrate_.empty();
  }
  bool long_running() const override { return true; }
  bool ranks_are_one() const override { return true; }
  void add_options(cli::Options& options) override {
    CLI::App& app = options.app();
    app.add_option("recipe", recipe_, "what to train and how, in YAML; with --export a run")
        ->type_name("RECIPE.yaml")
        ->check(cli::not_empty);
    app.add_option("settings", settings_, "section.key=value: overrides the recipe")
        ->type_name("KEY=VALUE");
    auto* data = app.add_option("--data", data_,
                                "latents that vfm-pack wrote; with --tokenizer, or to train one, "
                                "clips that vfm-shard did; again for each of a blend")
                     ->type_name("DIR")
                     ->allow_extra_args(false)
                     ->check(cli::not_empty);
    add_encoder_options(app);
    app.add_option("--synthetic", synthetic_,
                   "train on made-up latents or clips of these sizes, to measure a machine")
        ->type_name("FxHxW,...")
        ->excludes(data);
    app.add_option("-o,--out,--output", options_.out, "the run: checkpoints and logs")
        ->type_name("DIR")
        ->check(cli::not_empty)
        ->check(cli::not_file);
    auto* init =
        app.add_option(
               "--init", options_.init,
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
    app.add_option("--continue", options_.earlier,
                   "train this run further as a new stage in --out: other data, sizes, rate")
        ->type_name("RUN")
        ->check(cli::not_empty)
        ->excludes(init)
        ->excludes("--init-lora");
    add_export_options(app);
    device_.add(options);
    input_limits_.add(options);
    compute_.add(options);
    app.add_option("--cuda-graph", cuda_graph_,
                   "on a GPU: repeat steps of a known shape as CUDA graphs, or launch every kernel")
        ->type_name("auto|on|off")
        ->check(CLI::IsMember({"auto", "on", "off"}))
        ->capture_default_str();
    app.add_flag("--force", options_.force, "start over, replacing an earlier run in DIR");
    app.add_flag("--dry-run", dry_run_, "print parameters, FLOPs and memory; train nothing");
    const auto add_count = [&](const char* name, int& value, int most, const char* help) {
      app.add_option(name, value, help)->type_name("N")->check(CLI::Range(1, most));
    };
    add_count("--ranks", ranks_, 1 << 20,
              "with --dry-run: of so many processes (default: as many as were started)");
    app.add_option("--gpu", gpu_,
                   "with --dry-run: predict the time of a step on one, which need not be here")
        ->type_name("a100|h100|h200|b200|gb200|l40s|FILE");
    app.add_flag("--plan", plan_, "choose the layout of --gpus of --gpu; train nothing");
    add_count("--gpus", gpus_, 1 << 16, "of --plan: how many there are");
    add_count("--per-node", per_node_, 1 << 16,
              "of --plan: GPUs that a fast link joins (default: 8; gb200: 72)");
    app.add_option("--calibrate", calibrate_,
                   "measure this machine, and write FILE for --gpu; no recipe, train nothing")
        ->type_name("FILE.json")
        ->check(cli::not_empty);
    cli::add_seconds_option(options, "--calibrate-time", calibrate_options_.seconds,
                            "of --calibrate: about how long (default: 60s)");
    app.add_flag("--check-parallel", check_parallel_,
                 "compare a step on these ranks with one on one rank; train nothing");
    app.add_flag("--print-config", print_config_, "print the effective recipe; train nothing");
    report_.add(options, "write a page with the run's curves; of a tokenizer with what it decodes");
    add_count("-j,--jobs", jobs_, 4096, "threads of each process (default: processors/processes)");
  }

  void check() override {
    if (!calibrate_.empty()) return check_calibrate();
    if (calibrate_options_.seconds != train::CalibrateOptions{}.seconds)
      fail_usage("--calibrate-time is for --calibrate");
    check_continue();
    train::parse_overrides(settings_);
    if (recipe_.empty() && options_.earlier.empty())
      fail_usage("a recipe is needed: vfm-train RECIPE.yaml ...");
    check_plan();
    options_.gpu = models::chosen_gpu(gpu_, dry_run_ || plan_, device_.device);
    if (!export_.folder.empty()) return check_export();
    for (const CLI::Option* option : export_options_)
      if (option->count() > 0) fail_usage("{} is for --export", option->get_name());
    if (!synthetic_.empty()) options_.synthetic = train::parse_sizes(synthetic_);
    if (ranks_ > 0 && !dry_run_) fail_usage("--ranks is for --dry-run");
    if (check_parallel_ && (dry_run_ || print_config_))
      fail_usage("--check-parallel goes without --dry-run and --print-config");
    if (check_parallel_ && !options_.out.empty())
      fail_usage("--check-parallel writes nothing: leave --out out");
    if (dry_run_ || print_config_ || check_parallel_ || plan_) return;
    if (options_.out.empty()) fail_usage("--out DIR is needed: where the run is kept");
  }

  long run(cli::Context& context) override {
    if (!export_.folder.empty()) {
      if (context.launch.rank == 0) context.manifest.write(train::export_model(export_));
      return 0;
    }
    if (!calibrate_.empty()) return calibrate(context);
    if (dry_run_ || print_config_ || plan_) return context.launch.rank > 0 ? 0 : show(context);
    return dist::with_world(context.launch.ranks, [&](dist::World& world) -> long {
      on_all_ranks(world, [&] { prepare(context); });  // what all refuse is said once
      world.section("setup", options_.recipe.train.setup_limit);
      // All ranks wait for the one that makes an index of the data.
      const io::QuietWaits quiet(world.rank() > 0);
      world.use_device(options_.device, compute_.deterministic);
      if (check_parallel_) return check_parallel(world);
      return train::run(options_, world, context.manifest, context.progress);
    });
  }

 private:
  /// What there is to know before any work.
  void prepare(const cli::Context& context) {
    read_recipe();
    if (context.launch.rank == 0) train::warn_of_clip_settings(options_);
    input_limits_.apply();
    options_.device = options_.gpu != nullptr
                          ? options_.gpu->device()
                          : dist::rank_device(device_.device, context.launch.local_rank,
                                              context.launch.local_ranks, context.launch.shown_gpu);
    options_.local_ranks = std::max(1, context.launch.local_ranks);
    ops::set_gpu_options(options_.device, compute_.deterministic, compute_.attention,
                         context.cache);
    if (cuda_graph_ == "on" && options_.device == Device::cpu)
      fail_usage("--cuda-graph on is for a GPU, and this run computes on the CPU");
    options_.report = report_.path;
    options_.threads =
        dist::threads_per_rank(jobs_, context.launch.ranks, context.launch.local_ranks);
    GraphCache::allow(cuda_graph_ != "off");
  }

  /// The recipe, a plan, or what a step takes.
  long show(const cli::Context& context) {
    const bool recipe_alone = print_config_ && !dry_run_;
    recipe_alone ? read_recipe() : prepare(context);
    if (print_config_) cli::print(train::to_yaml(options_.recipe));
    if (recipe_alone) return 0;
    if (plan_) return plan();
    const Json cost = train::training_cost(options_, ranks_ > 0 ? ranks_ : context.launch.ranks);
    tell(cost, train::training_words(cost));
    return 0;
  }

  static void tell(const Json& result, const std::string& words) {
    cli::print(dump_json(result) + "\n");
    cli::say(words);
  }

  void add_encoder_options(CLI::App& app) {
    train::EncoderNames& names = options_.encoders;
    app.add_option("--tokenizer", names.tokenizer,
                   "encode the clips of --data while training; of --export: its folder, if it has "
                   "moved")
        ->check(cli::not_empty)
        ->type_name("builtin:wavelet|builtin:fsq|DIR|FILE.json");
    app.add_option("--text", names.text, "with --tokenizer: encode captions that have no embedding")
        ->check(cli::not_empty)
        ->type_name("builtin:hash|DIR");
    app.add_option(
           "--latent-scale", names.scale,
           "with --tokenizer: mean and deviation of latents, as in a latents.json (default: "
           "the tokenizer's own, or measured)")
        ->check(cli::not_empty)
        ->type_name("FILE.json");
  }

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
    add("--text-encoder", export_.text_encoder,
        "of --export: the text encoder's folder, if it has moved")
        ->check(cli::not_empty)
        ->type_name("DIR");
  }

  /// The recipe may be left out: that of the run to continue stands for it.
  void check_continue() {
    if (options_.earlier.empty()) return;
    if (check_parallel_)
      fail_usage(
          "--check-parallel takes one step, and is not for --continue: check the layout with "
          "--init '{}'",
          options_.earlier);
    if (recipe_.find('=') == std::string::npos || io::file_exists(recipe_)) return;
    settings_.insert(settings_.begin(), std::move(recipe_));
    recipe_.clear();
  }

  void check_plan() {
    if (!plan_ && gpus_ > 0) fail_usage("--gpus is for --plan");
    if (!plan_ && per_node_ > 0) fail_usage("--per-node is for --plan");
    if (!plan_) return;
    if (dry_run_ || print_config_ || check_parallel_ || !options_.out.empty())
      fail_usage("--plan goes without --dry-run, --print-config, --check-parallel and --out");
    if (gpus_ == 0 || !gpu_) fail_usage("--plan needs --gpus N and --gpu NAME: what it is for");
  }

  void check_calibrate() const {
    if (!recipe_.empty() || !data_.empty() || !options_.out.empty() || !options_.init.empty() ||
        !options_.earlier.empty() || !export_.folder.empty() || !synthetic_.empty() || gpu_ ||
        dry_run_ || print_config_ || check_parallel_ || plan_)
      fail_usage(
          "--calibrate goes without a recipe, --data, --synthetic, --out, --init, --continue, "
          "--export, --gpu, --dry-run, --plan, --print-config and --check-parallel");
    if (!options_.force && io::file_exists(calibrate_))
      fail_usage("'{}' is there already: --force replaces it", calibrate_);
  }

  long calibrate(cli::Context& context) {
    train::CalibrateOptions options = calibrate_options_;
    options.threads =
        dist::threads_per_rank(jobs_, context.launch.ranks, context.launch.local_ranks);
    options.local_ranks = std::max(1, context.launch.local_ranks);
    options.device = dist::rank_device(device_.device, context.launch.local_rank,
                                       context.launch.local_ranks, context.launch.shown_gpu);
    ops::set_gpu_options(options.device, compute_.deterministic, compute_.attention, context.cache);
    return dist::with_world(context.launch.ranks, [&](dist::World& world) -> long {
      world.section("step", 600);
      world.use_device(options.device, compute_.deterministic);
      const Json table = train::calibrate(options, world, context.progress);
      if (world.rank() > 0) return 0;
      io::write_file(calibrate_, dump_json_pretty(table));
      cli::say(train::calibration_words(table));
      return 0;
    });
  }

  /// 1 if no layout fits.
  long plan() const {
    train::PlanRequest request{gpus_, per_node_, options_.gpu};
    if (per_node_ == 0) request.per_node = options_.gpu->per_node;
    const Json plan = train::plan_training(options_, request);
    tell(plan, train::plan_words(plan));
    if (!report_.path.empty()) train::write_plan_page(report_.path, plan);
    return plan["best"].empty() ? 1 : 0;
  }

  /// The number of values that are not those of one rank.
  long check_parallel(dist::World& world) const {
    omp_set_num_threads(options_.threads);
    std::unique_ptr<train::Dataset> data;
    on_all_ranks(world, [&] { data = train::open_data(options_); });
    data->settle(world, {});
    const train::ParallelCheck check = train::check_parallel(options_, *data, world);
    if (world.rank() == 0) tell(check.to_json(), check.words());
    return check.passed ? 0 : 1;
  }

  /// The recipe, and what stands there that does not go with the options.
  void read_recipe() {
    const std::vector<train::Setting> settings = train::read_settings(recipe_, settings_);
    std::optional<train::Beginning> beginning;
    if (!options_.init.empty() || !options_.earlier.empty()) {
      options_.go_on_adapters =
          init_lora_ == "continue" || (init_lora_ == "auto" && train::sets_adapters(settings));
      beginning = train::read_beginning(options_, train::kind_of(settings).pipeline_part());
      options_.base = beginning->facts;
    }
    options_.recipe = train::make_recipe(settings, beginning ? &*beginning : nullptr);
    train::settle_folders(options_, data_);
    const std::string& type = options_.recipe.model.type;
    const train::Kind& kind = train::kind_of(type);
    if (cuda_graph_ == "on" && !kind.has_graphs())
      fail_usage("--cuda-graph on is for diffusion models, and 'model.type' is {}", type);
    train::check_clip_options(options_);
    if (cuda_graph_ == "on" && options_.recipe.model.offload)
      fail_usage("--cuda-graph on is not for steps with 'model.offload', which graphs do not take");
    if (!dry_run_ && !print_config_ && !plan_ && options_.data.empty() && synthetic_.empty())
      fail_usage("--data DIR is needed: the folder that {} wrote", kind.data_tool());
    if (!print_config_ || dry_run_) train::check_size(options_.recipe);
  }

  void check_export() {
    if (!data_.empty() || !options_.out.empty() || !options_.init.empty() ||
        !options_.earlier.empty() || !settings_.empty() || dry_run_ || print_config_ ||
        check_parallel_)
      fail_usage(
          "--export goes without --data, --out, --init, --continue, settings, --dry-run, "
          "--check-parallel and --print-config: vfm-train RUN --export DIR");
    std::error_code error;
    if (!std::filesystem::is_directory(recipe_, error))
      fail_usage("--export needs a run of vfm-train in place of the recipe, and '{}' is none",
                 recipe_);
    if (!options_.encoders.text.empty() || !options_.encoders.scale.empty())
      fail_usage("--text and --latent-scale are for training, not for --export");
    export_.run = recipe_;
    export_.tokenizer = options_.encoders.tokenizer;
    export_.average = weights_ == "ema";
    export_.merge = lora_mode_ == "merged";
    export_.under = options_.init_under;
    export_.force = options_.force;
    using Parts = train::ExportOptions::Parts;
    export_.parts = parts_ == "link" ? Parts::link : parts_ == "copy" ? Parts::copy : Parts::none;
  }

  std::string calibrate_;
  train::CalibrateOptions calibrate_options_;
  std::optional<std::string> gpu_;
  std::string recipe_, synthetic_, cuda_graph_ = "auto", init_lora_ = "auto";
  cli::ReportOptions report_;
  cli::DeviceOptions device_;
  cli::InputLimitOptions input_limits_;
  cli::ComputeOptions compute_;
  std::vector<std::string> settings_, data_;
  train::ExportOptions export_;
  std::string weights_ = "ema", lora_mode_ = "merged", parts_ = "link";
  std::vector<CLI::Option*> export_options_;
  train::RunOptions options_;
  bool dry_run_ = false, print_config_ = false, check_parallel_ = false, plan_ = false;
  int ranks_ = 0;                // 0: as many as were started
  int gpus_ = 0, per_node_ = 0;  // of --plan
  int jobs_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<TrainTool>}});
}
