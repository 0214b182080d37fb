// vfm-train plan: the layout that trains a recipe fastest on some GPUs.
// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "models/gpu_table.h"
#include "ops/gpu_options.h"
#include "train/plan/plan.h"
#include "train_options.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainPlanTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Finds the fastest layouts for a number of GPUs.";
  }
  std::string examples() const override {
    return "vfm-train plan 7b.yaml --gpus 64 --gpu h100 --synthetic 8x64x64\n"
           "vfm-train plan recipe.yaml --gpus 16 --gpu h200 --data latents --report plan.html\n"
           "vfm-train plan recipe.yaml --gpus 2 --gpu ./here.json --data latents";
  }

  void add_options(cli::Options& options) override {
    training_.add_recipe(options);
    options.group("GPUs");
    options.add("--gpus", request_.gpus, "N", "number of GPUs")
        .in(1, 1 << 16)
        .required()
        .shown("")
        .everyday()
        .manual("Number of GPUs.");
    add_gpu(options, gpu_)
        .required()
        .manual(
            "The GPU. A name with a / or ending in .json is a file of *vfm-train-calibrate*(1).");
    options.add("--per-node", per_node_, "N", "GPUs that the fast link of a node joins")
        .in(1, 1 << 16)
        .shown("8; gb200: 72")
        .everyday()
        .manual("Number of GPUs that the fast link of a node joins.");
    training_.add_data(options);
    training_.add_beginning(options, true);
    options.group("Output");
    report_.add(options, "write the layouts as a page, too");
    options.group("Computing");
    compute_.add(options);
  }

  bool writes_manifest(const cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }
  void check() override {
    training_.check();
    training_.need_recipe();
    request_.gpu = training_.run.gpu = &models::find_gpu(*gpu_);
    request_.per_node = per_node_ > 0 ? per_node_ : request_.gpu->per_node;
  }

  /// Returns 1 if no layout fits.
  long run(cli::Context& context) override {
    if (context.launch.rank > 0) return 0;
    train::RunOptions& run = training_.run;
    training_.read();
    train::check_size(run.recipe);
    run.device = run.gpu->device();
    ops::set_gpu_options(run.device, compute_.deterministic, compute_.attention, context.cache);
    request_.arguments = training_.arguments();
    request_.data = training_.data_arguments();
    const Json plan = train::plan_training(run, request_);
    if (cli::stdout_is_terminal())
      cli::print(train::plan_words(plan));
    else
      tell(plan, train::plan_words(plan));
    if (!report_.path.empty()) train::write_plan_page(report_.path, plan);
    return plan["best"].empty() ? 1 : 0;
  }

 private:
  TrainingOptions training_;
  cli::ComputeOptions compute_;
  cli::ReportOptions report_;
  train::PlanRequest request_;
  std::optional<std::string> gpu_;
  int per_node_ = 0;  // 0 for the number in the GPU's table
};

}  // namespace

std::unique_ptr<cli::Tool> make_train_plan() {
  return std::make_unique<TrainPlanTool>();
}
