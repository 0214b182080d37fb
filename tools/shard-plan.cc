// vfm-shard plan: plans a dataset, in parts if wanted, without its shards.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "dataset/dataset.h"
#include "dataset/scan_parts.h"
#include "shard/where.h"
#include "shard_choices.h"
#include "verbs.h"

namespace {

class ShardPlanTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-shard"; }
  std::string description() const override { return "Plans a dataset that many machines write."; }
  std::string examples() const override {
    return "vfm-shard plan -o dataset --part env/100 clips\n"
           "vfm-shard plan -o dataset clips\n"
           "vfm-shard --plan dataset/plan.bin --part env/500";
  }
  std::string version_details() const override { return vfm::shard::sql_version(); }

  void add_options(vfm::cli::Options& options) override {
    options.group("Input and output");
    input_.add_shards(options);
    output_.add(options, true, "write the plan to the folder of the dataset");
    options.row("--output").manual("Write the plan to this folder, which will have the dataset.");
    options.row("--force").manual(
        "Replace the dataset in the folder, and assign all sources to splits again.");
    choices_.add_size(options);
    choices_.add(options);
    choices_.explain(options);
    options.group("Work");
    jobs_.add(options);
    part_.add(options).everyday();
    member_.add(options);
  }

  void check() override {
    choices_.check();
    if (!part_.choice.whole() && output_.force)
      vfm::fail_usage("--part does not do a complete part again: --force is for the whole plan");
  }

  bool winds_up() const override { return part_.winds_up(); }
  long run(vfm::cli::Context& context) override {
    options_.inputs = input_.resolved();
    options_.output = output_.directory;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    vfm::share::Slots slots = context.slots(jobs_);
    if (part_.choice.whole())
      return vfm::dataset::make_plan(options_, slots, context.progress, context.manifest);
    return vfm::dataset::scan_parts(options_, part_.choice, slots, context.progress,
                                    context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::PartOptions part_;
  vfm::cli::MemberOptions member_;
  vfm::dataset::ShardOptions options_;
  ShardChoices choices_{options_};
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_shard_plan() {
  return std::make_unique<ShardPlanTool>();
}
