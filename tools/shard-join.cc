// vfm-shard join: makes a folder complete that several commands wrote in parts.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "dataset/planned_parts.h"
#include "dataset/whole_clips.h"
#include "generate/files/joined_clips.h"
#include "pack/whole_latents.h"
#include "parts/part_run.h"
#include "verbs.h"

namespace {

class ShardJoinTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-shard"; }
  std::string description() const override {
    return "Writes the files of a whole folder that other commands wrote in parts.";
  }
  std::string examples() const override {
    return "vfm-shard join clips > clips.jsonl\n"
           "vfm-shard join --prune latents";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Folder");
    options.add("DIR", directory_, "DIR", "folder of clips, a dataset, or latents")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .everyday();
    options.flag("--prune", prune_, "remove shards that no part wrote")
        .everyday()
        .manual(
            "Remove shards of vfm in the folder that no complete part wrote, with their indexes "
            "and columns. Files that vfm did not write are kept. *-v* names what is removed.");
  }

  long run(vfm::cli::Context& context) override {
    std::vector<std::string> tools;
    for (const char* tool : {"pack", "generate", "clip", "shard", "caption", "embed"})
      if (vfm::parts::count_parts(directory_, tool)) tools.emplace_back(tool);
    if (tools.empty())
      vfm::fail_usage(
          "'{}' has no parts: give a folder that vfm-clip, vfm-caption, vfm-embed, vfm-pack, "
          "vfm-generate or vfm-shard --plan wrote with --part",
          directory_);
    const std::string& first = tools.front();
    if ((first == "pack" || first == "generate") && tools.size() > 1)
      vfm::fail_usage("'{}' has parts of vfm-{} and of other programs; {} into another folder",
                      directory_, first, first);
    if (first == "generate" && prune_)
      vfm::fail_usage("--prune removes shards, and '{}' has clips of vfm-generate: leave it out",
                      directory_);
    if (first == "pack")
      vfm::pack::join_latents(directory_, prune_, context.manifest);
    else if (first == "generate")
      vfm::generate::join_generated(directory_, context.manifest);
    else
      join_dataset(context.manifest);
    for (const std::string& tool : tools)
      vfm::parts::tidy_parts(directory_, tool);
    vfm::parts::tidy_parts(directory_, "plan");
    return 0;
  }

 private:
  /// Columns may have been added to the shards of a dataset since it was joined.
  void join_dataset(vfm::io::ManifestWriter& manifest) const {
    const auto has = [&](const char* tool) {
      return vfm::parts::count_parts(directory_, tool).has_value();
    };
    const bool columns = has("clip") || has("caption") || has("embed");
    if (has("shard")) vfm::dataset::join_planned(directory_, columns ? nullptr : &manifest);
    if (columns) vfm::dataset::join_clips(directory_, prune_, manifest);
  }

  std::string directory_;
  bool prune_ = false;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_shard_join() {
  return std::make_unique<ShardJoinTool>();
}
