// vfm-caption: adds a caption column to shards.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "columns/caption.h"
#include "media/version.h"
#include "shard_estimate.h"

namespace {

class CaptionTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-caption"; }
  std::string description() const override {
    return "Adds captions to the samples of shards, as a column beside them.";
  }
  std::string example() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption > captioned.jsonl";
  }

  std::string version_details() const override { return vfm::media::ffmpeg_version(); }

  void add_options(CLI::App& app) override {
    columns_.add(app);
    app.add_option("--from", options_.from,
                   "where captions come from; the first that has one gives it: existing, "
                   "existing:member|field|txt|json|srt, field:NAME, builtin:measure")
        ->type_name("SOURCE,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->default_str("existing,builtin:measure");
    app.add_option("--sidecars", options_.sidecars,
                   "also read captions beside sources below these folders, which only shards name")
        ->type_name("DIR,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::ExistingDirectory);
    app.add_option("--max-characters", options_.max_characters,
                   "cut longer captions at a word (default: never)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--empty", empty_,
                   "skip: ask the next source instead of taking an empty caption; keep: take it")
        ->type_name("skip|keep")
        ->check(CLI::IsMember({"skip", "keep"}))
        ->capture_default_str();
    report_.add(app, "write a page with clips and their captions");
    vfm::cli::add_dry_run(app, dry_run_);
  }

  void check() override { vfm::columns::check_caption_sources(options_.from); }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    options_.inputs = columns_.input.resolved();
    options_.directory = columns_.output.directory;
    options_.force = columns_.output.force;
    options_.limits.member = columns_.member.bytes;
    options_.keep_empty = empty_ == "keep";
    options_.report = report_.path;
    options_.hardware = vfm::media::choose_hardware(columns_.hwaccel.hwaccel);
    vfm::Slots slots(columns_.jobs.resolved(), context.makeflags);
    if (dry_run_) {
      options_.report.clear();
      return tell_shard_estimate(options_.inputs, options_.directory, slots.threads(),
                                 [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
                                   return vfm::columns::caption(options_, slots, progress,
                                                                manifest);
                                 });
    }
    return vfm::columns::caption(options_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::ColumnOptions columns_;
  vfm::cli::ReportOptions report_;
  std::string empty_ = "skip";
  vfm::columns::CaptionOptions options_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  CaptionTool tool;
  return vfm::cli::run(argc, argv, tool);
}
