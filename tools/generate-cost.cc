// vfm-generate cost: what a clip takes, before it is made.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "generate/cost/generate_cost.h"
#include "generate_options.h"
#include "models/gpu_table.h"
#include "verbs.h"

namespace {

class GenerateCostTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-generate"; }
  std::string description() const override {
    return "Prints FLOPs, memory and time that a clip takes.";
  }
  std::string examples() const override {
    return "vfm-generate cost --model run\n"
           "vfm-generate cost --model cosmos --gpu h100 --size 1280x704 --frames 121\n"
           "vfm-generate cost --model cosmos --gpu h100 --parallel auto=8";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Prediction");
    vfm::cli::OptionRow& gpu = options.add(
        "--gpu", gpu_, "a100|h100|h200|b200|gb200|l40s|FILE.json", "predict the time on this GPU");
    gpu.check(vfm::cli::not_empty)
        .everyday()
        .manual(
            "Predict the time of the clip on this GPU, and whether the GPU's memory suffices. "
            "_FILE.json_ has rates that *vfm-train-calibrate*(1) measured. For a named GPU, the "
            "rates are estimated from published tables. With *--parallel* all GPUs of the layout "
            "work together. Eight GPUs a machine are assumed. Reading the model, the host's work "
            "and writing the mp4 are not counted.");
    options.group("Model");
    generate_.add_model(options);
    options.group("Clips");
    generate_.add_prompt(options);
    generate_.add_clip(options);
    options.row("--condition-frames").needs(options.row("--condition"));
    options.group("Sampling");
    generate_.add_sampling(options);
    options.group("Computing");
    generate_.tokenizer.device.add(options);
    gpu.excludes(options.row("--device"));
    generate_.add_precision(options);
    options.row("--fp8").everyday();
    options.row("--quantize").everyday();
    for (const char* name : {"--model",       "--lora",
                             "--no-merge",    "--text-encoder",
                             "--tokenizer",   "--negative",
                             "--size",        "--frames",
                             "--condition",   "--condition-frames",
                             "--steps",       "--guidance",
                             "--sampler",     "--sigmas",
                             "--temperature", "--guidance-low",
                             "--compute",     "--tokenizer-memory",
                             "--fp8",         "--quantize",
                             "--parallel"})
      options.row(name).explained_in("vfm-generate(1)");
  }

  void check() override {
    generate_.read(job_);
    if (job_.parallel.choose == vfm::dist::Layout::kAllRanks)
      vfm::fail_usage("--parallel auto needs the number of ranks here, as in --parallel auto=8");
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }

  long run(vfm::cli::Context& context) override {
    if (context.launch.rank > 0) return 0;
    if (gpu_) job_.gpu = &vfm::models::find_gpu(*gpu_);
    job_.device = gpu_ ? job_.gpu->device() : generate_.tokenizer.device_of(context.launch);
    const vfm::Json cost = vfm::generate::generation_cost(job_);
    vfm::cli::print(vfm::dump_json(cost) + "\n");
    vfm::cli::say(vfm::generate::generation_words(cost));
    return 0;
  }

 private:
  vfm::generate::GenerateJob job_;
  GenerateOptions generate_;
  std::optional<std::string> gpu_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_generate_cost() {
  return std::make_unique<GenerateCostTool>();
}
