// vfm-shard report: a page about the samples of shards.
// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "dataset/dataset.h"
#include "shard/where.h"
#include "shard_choices.h"
#include "verbs.h"

namespace {

class ShardReportTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-shard"; }
  std::string description() const override {
    return "Writes a page about the samples that the options choose from shards.";
  }
  std::string examples() const override {
    return "vfm-shard report -o look.html clips/*.tar\n"
           "vfm-shard report -o sharp.html --where 'sharpness > 0.01' clips/*.tar\nvfm-shard "
           "report -o motion.html --scores motion dataset";
  }
  std::string version_details() const override { return vfm::shard::sql_version(); }

  void add_options(vfm::cli::Options& options) override {
    options.group("Input and output");
    input_.add_shards(options);
    page_.add(options, "write the page here", "-o,--output");
    options.row("--output")
        .required()
        .shown("")
        .manual("Write the page to this file. A missing folder is created.");
    options
        .add("--scores", options_.report_scores, "FIELD,...",
             "show samples with the lowest and highest values of these fields")
        .separated_by(',')
        .check(vfm::cli::not_blank)
        .shown("numbers that may be scores")
        .everyday()
        .manual(
            "Show the samples with the lowest and highest values of these fields of the JSON. The "
            "default is the 32 most frequent numeric fields, except fields that identify a clip or "
            "its storage, such as _begin_, _width_ and _bytes_.");
    choices_.add(options);
    choices_.explain(options);
    options.group("Work");
    jobs_.add(options);
    member_.add(options);
  }

  void check() override { choices_.check(); }

  bool writes_manifest(const vfm::cli::Launch&) const override { return false; }

  long run(vfm::cli::Context& context) override {
    options_.inputs = input_.resolved();
    options_.report = page_.path;
    options_.limits.member = member_.bytes;
    vfm::share::Slots slots = context.slots(jobs_);
    return vfm::dataset::run(options_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::ReportOptions page_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::MemberOptions member_;
  vfm::dataset::ShardOptions options_;
  ShardChoices choices_{options_};
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_shard_report() {
  return std::make_unique<ShardReportTool>();
}
