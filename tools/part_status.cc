// The verb `status` of programs whose work has parts: how far the parts are.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "io/manifest.h"
#include "part_page.h"
#include "parts/part_run.h"
#include "parts/stage_look.h"
#include "parts/status.h"
#include "verbs.h"

namespace {

class PartStatusTool : public vfm::cli::Tool {
 public:
  /// `program` is the program without "vfm-". `tools` are the tools whose parts it does
  /// (parts/part_run.h), in the order of work.
  explicit PartStatusTool(std::string program, std::vector<std::string> tools = {})
      : program_(std::move(program)), tools_(std::move(tools)) {
    if (tools_.empty()) tools_ = {program_};
  }

  std::string name() const override { return "vfm-" + program_; }
  std::string description() const override { return "Tells how far the parts of a work are."; }
  std::string examples() const override {
    return fmt::format(
        "vfm-{0} status clips\n"
        "sbatch --array=$(vfm-{0} status clips --missing) {0}.sbatch",
        program_);
  }

  void add_options(vfm::cli::Options& options) override {
    options.add("DIR", directory_, "DIR", "the folder that commands with --part write")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .everyday();
    vfm::cli::OptionRow& missing =
        options.flag("--missing", missing_, "print the numbers of parts that nobody does")
            .everyday()
            .manual(
                "Print only the numbers of the parts that are neither done nor worked at, for the "
                "option *--array* of *sbatch*(1). To know whether a process of another machine "
                "still works, this may take 80 seconds. If there is no such part, print nothing.");
    options.add("--max-array", max_array_, "N", "print windows for Slurm's MaxArraySize N")
        .in(1, 1'000'000'000)
        .shown("")
        .needs(missing)
        .everyday()
        .manual(
            "Print a line for each window of _N_ numbers, where _N_ is Slurm's _MaxArraySize_: the "
            "numbers of the window, and its offset, which tasks need as _VFM_PART_OFFSET_.");
    page_.add(options, "write a page with pictures and the reasons of failures");
    options.row("--report")
        .manual(
            "Also write an HTML page: a picture of all parts by state, the rate by time, the "
            "hosts, "
            "the parts that failed and why, and the errors of inputs. With *--missing* it is "
            "certain "
            "which processes still work.");
    options.add("--next", next_, "STAGES", "print the stage that this node does next")
        .separated_by(',')
        .excludes(missing)
        .everyday()
        .check(fault_of_stage)
        .manual(
            "Print one of _STAGES_, such as _clip,caption,embed_: the stage of which this node "
            "does a part next. _STAGES_ are all that it can do, in order of the work. Wait while "
            "it has none to do. If all parts of _STAGES_ are done, print nothing. See UNLIKE NODES "
            "in *vfm-slurm*(7).");
  }

  bool winds_up() const override { return !next_.empty(); }
  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !missing_ && next_.empty() && !vfm::cli::stdout_is_terminal();
  }

  long run(vfm::cli::Context& context) override {
    if (!next_.empty()) {
      if (const auto tool = vfm::parts::await_stage(directory_, next_, vfm::cli::node_kind()))
        vfm::cli::print(*tool + "\n");
      return 0;
    }
    std::vector<std::string> there;
    for (const std::string& tool : tools_)
      if (vfm::parts::count_parts(directory_, tool)) there.push_back(tool);
    if (there.empty()) there.push_back(tools_.back());  // an error says that there are no parts
    for (const std::string& tool : there) {
      const vfm::parts::PartsStatus status = vfm::parts::look_at_parts(directory_, tool, missing_);
      const bool to_do = !status.to_do().empty();
      // A later tool needs all parts of the earlier one.
      const bool last = tool == there.back() || (missing_ && to_do);
      if (last && !page_.path.empty()) write_part_page(status, directory_, page_.path);
      if (missing_ && to_do)
        vfm::cli::print(windows(status));
      else if (!missing_ && vfm::cli::stdout_is_terminal())
        vfm::cli::print(vfm::parts::status_table(status));
      else if (!missing_)
        write_records(status, context.manifest);
      if (last) break;
    }
    return 0;
  }

 private:
  static std::string fault_of_stage(const std::string& stage) {
    for (const char* tool : {"clip", "caption", "embed"})
      if (stage == tool) return "";
    return "'" + stage + "' is not clip, caption or embed";
  }

  std::string windows(const vfm::parts::PartsStatus& status) const {
    std::string text;
    for (const auto& window : vfm::parts::missing_expressions(status.to_do(), max_array_)) {
      text += window.expression;
      if (max_array_ > 0) text += fmt::format(" {}", window.offset);
      text += "\n";
    }
    return text;
  }

  static void write_records(const vfm::parts::PartsStatus& status,
                            vfm::io::ManifestWriter& manifest) {
    for (const vfm::parts::PartState& part : status.parts)
      manifest.write(vfm::parts::part_record(status, part));
    manifest.write(vfm::parts::parts_record(status));
  }

  std::string program_;
  std::vector<std::string> tools_;
  std::string directory_;
  vfm::cli::ReportOptions page_;
  std::vector<std::string> next_;
  bool missing_ = false;
  int max_array_ = 0;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_caption_status() {
  return std::make_unique<PartStatusTool>("caption");
}
std::unique_ptr<vfm::cli::Tool> make_clip_status() {
  return std::make_unique<PartStatusTool>("clip");
}
std::unique_ptr<vfm::cli::Tool> make_embed_status() {
  return std::make_unique<PartStatusTool>("embed");
}
std::unique_ptr<vfm::cli::Tool> make_generate_status() {
  return std::make_unique<PartStatusTool>("generate");
}
std::unique_ptr<vfm::cli::Tool> make_pack_status() {
  return std::make_unique<PartStatusTool>("pack");
}
std::unique_ptr<vfm::cli::Tool> make_shard_status() {
  return std::make_unique<PartStatusTool>("shard", std::vector<std::string>{"plan", "shard"});
}
