// vfm-train recipe: the effective recipe, and where each value comes from.
// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe_page.h"
#include "train_options.h"
#include "verbs.h"

namespace {

class TrainRecipeTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Prints all keys with their values and sources.";
  }
  std::string examples() const override {
    return "vfm-train recipe quickstart.yaml train.steps=2000\n"
           "vfm-train recipe model.type=stdit\n"
           "vfm-train recipe --init run lora.rank=16";
  }

  void add_options(vfm::cli::Options& options) override {
    training_.add_recipe(options);
    training_.add_beginning(options, true);
  }

  bool ranks_are_one() const override { return true; }
  bool writes_manifest(const vfm::cli::Launch&) const override { return false; }
  std::string manual_part(const std::string& name) const override {
    return name == "RECIPE" ? vfm::train::recipe_manual() : "";
  }
  void check() override { training_.check(); }

  long run(vfm::cli::Context& context) override {
    if (context.launch.rank > 0) return 0;
    const std::vector<vfm::train::Setting> settings = training_.read();
    const vfm::train::RunOptions& run = training_.run;
    vfm::cli::print(vfm::train::explained_yaml(run.recipe, settings,
                                               run.init.empty() ? run.earlier : run.init));
    return 0;
  }

 private:
  TrainingOptions training_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_train_recipe() {
  return std::make_unique<TrainRecipeTool>();
}
