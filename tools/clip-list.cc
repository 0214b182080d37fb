// vfm-clip list: shares out videos to parts, for commands on many machines.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/options.h"
#include "clip/source.h"
#include "io/error_log.h"
#include "io/file.h"
#include "io/manifest.h"
#include "parts/clip_list.h"
#include "parts/part_choice.h"
#include "verbs.h"

namespace {

class ClipListTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  std::string description() const override { return "Shares out videos to parts."; }
  std::string examples() const override {
    return "find raw -name '*.mp4' | vfm-clip list -o clips -n 1000\n"
           "vfm-clip list new.jsonl -o clips";
  }

  void add_options(vfm::cli::Options& options) override {
    table_ = &options;
    options.group("Input and output");
    input_.add(options, "VIDEO", "videos, pictures or .jsonl manifests (default: '-')");
    options.add("-o,--output", list_.directory, "DIR", "folder of the clips")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .check(vfm::cli::not_file)
        .everyday()
        .manual("Write the list into _DIR/parts_. *vfm-clip --part* needs the same _DIR_.");
    options.add("-n,--parts", list_.parts, "N", "number of parts to make")
        .in(1, vfm::parts::kMostParts)
        .shown("for more videos, parts as large as the earlier ones")
        .everyday()
        .manual(
            "Make _N_ parts of the videos that the list does not have. A new list needs this "
            "option.");
    vfm::cli::add_bytes_option(options, "--shard-size", list_.shard_bytes,
                               "maximum size of a shard")
        .shown("256MiB, or that of the list")
        .everyday()
        .manual("Maximum size of a shard, as for *vfm-clip --part*. A list has one size.");
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !vfm::cli::stdout_is_terminal();
  }

  void check() override {
    if (table_->row("--shard-size").given() && list_.shard_bytes == 0)
      vfm::fail_usage("--shard-size must be above 0");
  }

  long run(vfm::cli::Context& context) override {
    list_.inputs = input_.resolved();
    list_.is_picture = [](const std::string& path) {
      return !vfm::clip::image_extension(path).empty();
    };
    vfm::io::ErrorLog errors(vfm::io::join_path(list_.directory, "parts/list/errors.jsonl"),
                             name() + " list");
    const vfm::parts::ListFacts facts = vfm::parts::write_list(
        list_, [&](const vfm::io::Fault& fault) { errors.add(fault); }, context.progress);
    errors.finish();
    if (vfm::cli::stdout_is_terminal())
      vfm::cli::print(summary(facts));
    else
      write_records(facts, context.manifest);
    return static_cast<long>(errors.count());
  }

 private:
  static std::string summary(const vfm::parts::ListFacts& facts) {
    std::uint64_t videos = 0, bytes = 0;
    for (const vfm::parts::ListFacts::NewPart& part : facts.made) {
      videos += part.videos;
      bytes += part.bytes;
    }
    return fmt::format(
        "{} parts in all; {} new parts of {} videos, {}; {} videos were listed before\n",
        facts.parts, facts.made.size(), videos, vfm::format_bytes(static_cast<double>(bytes)),
        facts.known);
  }

  void write_records(const vfm::parts::ListFacts& facts, vfm::io::ManifestWriter& manifest) const {
    for (const vfm::parts::ListFacts::NewPart& part : facts.made)
      manifest.write({{"kind", "part"},
                      {"tool", "vfm-clip"},
                      {"part", part.part},
                      {"path", vfm::parts::list_path(list_.directory, part.part)},
                      {"videos", part.videos},
                      {"bytes", part.bytes}});
    manifest.tell("parts", facts.parts);
    manifest.tell("known", facts.known);
  }

  vfm::cli::Options* table_ = nullptr;
  vfm::cli::InputOptions input_;
  vfm::parts::ListOptions list_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_clip_list() {
  return std::make_unique<ClipListTool>();
}
