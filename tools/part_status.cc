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
#include "parts/stage_look.h"
#include "parts/status.h"
#include "verbs.h"

namespace {

class PartStatusTool : public vfm::cli::Tool {
 public:
  /// `tool` is the program without "vfm-".
  explicit PartStatusTool(std::string tool) : tool_(std::move(tool)) {}

  std::string name() const override { return "vfm-" + tool_; }
  std::string description() const override { return "Tells how far the parts of a work are."; }
  std::string examples() const override {
    return fmt::format(
        "vfm-{0} status clips\n"
        "sbatch --array=$(vfm-{0} status clips --missing) {0}.sbatch",
        tool_);
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

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !missing_ && next_.empty() && !vfm::cli::stdout_is_terminal();
  }

  long run(vfm::cli::Context& context) override {
    if (!next_.empty()) {
      if (const auto tool = vfm::parts::await_stage(directory_, next_, vfm::cli::node_kind()))
        vfm::cli::print(*tool + "\n");
      return 0;
    }
    const vfm::parts::PartsStatus status = vfm::parts::look_at_parts(directory_, tool_, missing_);
    if (missing_)
      vfm::cli::print(windows(status));
    else if (vfm::cli::stdout_is_terminal())
      vfm::cli::print(vfm::parts::status_table(status));
    else
      write_records(status, context.manifest);
    return 0;
  }

 private:
  static std::string fault_of_stage(const std::string& stage) {
    for (const char* tool : {"clip", "caption", "embed", "pack"})
      if (stage == tool) return "";
    return "'" + stage + "' is not clip, caption, embed or pack";
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

  std::string tool_, directory_;
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
std::unique_ptr<vfm::cli::Tool> make_pack_status() {
  return std::make_unique<PartStatusTool>("pack");
}
