// vfm-train cost: what a training takes, before it runs.
// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "models/gpu_table.h"
#include "train_options.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainCostTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override { return "Predicts the memory and time of a training."; }
  std::string examples() const override {
    return "vfm-train cost 7b.yaml --synthetic 8x64x64\n"
           "vfm-train cost 7b.yaml --synthetic 8x64x64 --gpu h200\n"
           "vfm-train cost 7b.yaml --data latents --ranks 8 parallel.tp=4 --gpu ./here.json";
  }

  void add_options(cli::Options& options) override {
    training_.add_recipe(options);
    options.group("Prediction");
    options.add("--ranks", processes_, "N", "processes of the run; they need not be started")
        .in(1, 1 << 20)
        .shown("as many as were started")
        .everyday()
        .manual(
            "Number of processes of the run. They need not be started. Memory is given for the "
            "rank with the largest need. Without *--gpu*, _usable_ is the memory that this machine "
            "has for each started process.");
    add_gpu(options, gpu_)
        .manual(
            "Predict the time of a step on this GPU, and whether the GPU's memory suffices. A name "
            "with a / or ending in .json is a file of *vfm-train-calibrate*(1).");
    training_.add_data(options);
    training_.add_beginning(options, true);
    options.group("Output");
    options.add("-o,--output", training_.run.out, "DIR", "refuse what a run in DIR would refuse")
        .check(cli::not_empty)
        .check(cli::not_file)
        .shown("")
        .manual(
            "Refuse what a run in this folder would refuse, such as a recipe that differs from the "
            "recipe of an existing run.");
    ranks_.add(options);
    options.row("--gpu").excludes(options.row("--device"));
  }

  bool writes_manifest(const cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }
  void check() override {
    training_.check();
    training_.need_recipe();
    if (gpu_) training_.run.gpu = &models::find_gpu(*gpu_);
  }

  long run(cli::Context& context) override {
    if (context.launch.rank > 0) return 0;
    training_.read();
    train::check_size(training_.run.recipe);
    ranks_.apply(training_.run, context);
    const int ranks = processes_ > 0 ? processes_ : context.launch.ranks;
    const Json cost = train::training_cost(training_.run, ranks);
    tell(cost, train::training_words(cost));
    return 0;
  }

 private:
  TrainingOptions training_;
  RankOptions ranks_;
  std::optional<std::string> gpu_;
  int processes_ = 0;  // 0 for the number of started processes
};

}  // namespace

std::unique_ptr<cli::Tool> make_train_cost() {
  return std::make_unique<TrainCostTool>();
}
