// vfm-shard: makes a dataset of shards.
// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "dataset/dataset.h"
#include "dataset/planned_parts.h"
#include "shard/where.h"
#include "shard_choices.h"
#include "shard_estimate.h"
#include "verbs.h"

namespace {

class ShardTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-shard"; }
  std::string description() const override {
    return "Joins, filters, deduplicates, bins, splits and shuffles samples as a dataset.";
  }
  std::string examples() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset\n"
           "vfm-shard -o dataset --where 'seconds >= 2 AND motion > 0.0005' "
           "clips/*.tar\nvfm-shard -o dataset --split train=0.95,val=0.05 clips/*.tar";
  }
  std::string version_details() const override { return vfm::shard::sql_version(); }

  void add_options(vfm::cli::Options& options) override {
    options.group("Input and output");
    input_.add_shards(options);
    output_.add(options, false, "write the dataset to this folder");
    options.row("--output").manual("Write the dataset to this folder.");
    options.row("--force").manual(
        "Replace the dataset in the folder, and assign all sources to splits again.");
    choices_.add_size(options);
    report_.add(options, "write a page about the dataset");
    options.row("--report").manual("Write a page about the dataset. See *vfm-shard-report*(1).");
    vfm::cli::add_dry_run(options, dry_run_);
    options.row("--dry-run")
        .manual(
            "Predict how long the whole input would take, and keep no results. At most sixteen "
            "shards and a gigabyte are read. _samples_ has the numbers of samples that were "
            "_read_, left out (_filtered_, _without_, _duplicates_, _balanced_) and kept (_stay_). "
            "See DRY RUN in *vfm*(7).");
    choices_.add(options);
    options.group("Work");
    jobs_.add(options);
    member_.add(options);
    add_plan(options);
  }

  void check() override {
    choices_.check();
    if (!plan_.empty()) {
      if (part_.choice.whole())
        vfm::fail_usage("--plan writes parts of the shards: give --part I/N, env/N or auto/N");
      if (!input_.inputs.empty()) vfm::fail_usage("--plan FILE names the input: give no shards");
      return;
    }
    if (!part_.choice.whole())
      vfm::fail_usage(
          "--part writes shards of a plan: give --plan FILE, which vfm-shard plan made");
    if (output_.directory.empty()) vfm::fail_usage("--output is required");
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  long run(vfm::cli::Context& context) override {
    if (!plan_.empty()) {
      vfm::share::Slots slots = context.slots(jobs_);
      return vfm::dataset::write_planned(plan_, part_.choice, slots, context.progress,
                                         context.manifest);
    }
    options_.inputs = input_.resolved();
    options_.output = output_.directory;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    if (!dry_run_) options_.report = report_.path;
    vfm::share::Slots slots = context.slots(jobs_);
    if (dry_run_) {
      return tell_shard_estimate(
          options_.inputs, options_.output, slots.threads(),
          [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
            return vfm::dataset::run(options_, slots, progress, manifest, &counts_);
          },
          /*phases=*/true, [&] { return counts_json(); });
    }
    return vfm::dataset::run(options_, slots, context.progress, context.manifest);
  }

 private:
  /// The plan has the values of all other options.
  void add_plan(vfm::cli::Options& options) {
    vfm::cli::OptionRow& plan =
        options.add("--plan", plan_, "FILE", "write shards of the plan that vfm-shard plan made");
    plan.check(vfm::cli::not_empty)
        .shown("")
        .manual(
            "Write the shards of this plan, into the folder of the file. Needs *--part*. See "
            "*vfm-shard-plan*(1).");
    for (const char* name : {"--output",
                             "--force",
                             "--shard-size",
                             "--compress",
                             "--report",
                             "--dry-run",
                             "--where",
                             "--without",
                             "--balance",
                             "--balance-clusters",
                             "--rekey",
                             "--duplicate-threshold",
                             "--duplicate-method",
                             "--duplicate-vector",
                             "--keep-near-duplicates",
                             "--keep-duplicates",
                             "--split",
                             "--seed",
                             "--resolution-edges",
                             "--aspect-edges",
                             "--duration-edges",
                             "--max-member"})
      plan.excludes(options.row(name));
    part_.add(options).explained_in("vfm-shard-plan(1)");
  }

  vfm::Json counts_json() const {
    return {{"read", counts_.read},         {"filtered", counts_.filtered},
            {"without", counts_.without},   {"duplicates", counts_.duplicates},
            {"balanced", counts_.balanced}, {"stay", counts_.stay}};
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::ReportOptions report_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::PartOptions part_;
  vfm::cli::MemberOptions member_;
  vfm::dataset::SampleCounts counts_;  // of --dry-run
  vfm::dataset::ShardOptions options_;
  ShardChoices choices_{options_};
  std::string plan_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<ShardTool>},
                        {"report", make_shard_report},
                        {"plan", make_shard_plan},
                        {"join", make_shard_join},
                        {"status", make_shard_status}});
}
