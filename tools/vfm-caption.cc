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
                   "existing:member|field|txt|json|srt, field:NAME, model:DIR, builtin:measure")
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
    add_model_options(app);
    report_.add(app, "write a page with clips and their captions");
    vfm::cli::add_dry_run(app, dry_run_);
  }

  void check() override {
    vfm::columns::check_caption_sources(options_.from);
    if (!vfm::columns::caption_model_folder(options_.from).empty()) return;
    for (const CLI::Option* option : of_model_)
      if (option->count() > 0)
        vfm::fail_usage("{} is about a model, and --from names none: --from model:DIR",
                        option->get_name());
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    options_.inputs = columns_.input.resolved();
    options_.directory = columns_.output.directory;
    options_.force = columns_.output.force;
    options_.limits.member = columns_.member.bytes;
    options_.keep_empty = empty_ == "keep";
    options_.report = report_.path;
    set_model_options();
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
  void add_model_options(CLI::App& app) {
    vfm::columns::ModelCaptionOptions& model = options_.model;
    const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
      of_model_.push_back(app.add_option(name, value, help)->type_name(type));
      return of_model_.back();
    };
    add("--prompt", prompt_, "what model:DIR is asked about each window of a clip", "TEXT")
        ->default_str("to describe it in detail")
        ->check(vfm::cli::not_empty);
    add("--fps", model.fps, "frames a second that it sees", "N")
        ->check(CLI::Range(0.01, 240.0))
        ->capture_default_str();
    add("--window", model.window, "frames of a clip that it is asked about at a time", "N")
        ->check(CLI::Range(vfm::columns::kLeastWindow, 1 << 20))
        ->capture_default_str();
    add("--frame-tokens", model.frame_tokens, "what two frames may become, at most", "N")
        ->check(CLI::Range(4, 16384))
        ->capture_default_str();
    add("--max-tokens", model.rule.most_tokens, "of a text; a longer one is cut", "N")
        ->check(CLI::Range(1, 1 << 16))
        ->capture_default_str();
    add("--temperature", model.rule.choice.temperature,
        "of the draw of the next token; 0: the likeliest", "T")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    add("--top-p", model.rule.choice.top_p,
        "draw from the likeliest tokens that have this probability together", "P")
        ->check(CLI::Range(1e-6, 1.0))
        ->capture_default_str();
    add("--repetition-penalty", model.rule.choice.repetition_penalty,
        "of tokens that were there before; 1: none", "X")
        ->check(CLI::Range(0.01, 100.0))
        ->capture_default_str();
    seed_.add(app);
    of_model_.push_back(app.get_option("--seed"));
    add("--compute", compute_, "what the model's products are computed in", "f32|bf16")
        ->check(CLI::IsMember({"f32", "bf16"}))
        ->capture_default_str();
  }

  void set_model_options() {
    options_.model.rule.seed = seed_.seed;
    options_.model.compute = compute_ == "bf16" ? vfm::DType::bf16 : vfm::DType::f32;
    if (!prompt_.empty()) options_.model.video_prompt = options_.model.picture_prompt = prompt_;
  }

  vfm::cli::ColumnOptions columns_;
  vfm::cli::ReportOptions report_;
  std::string empty_ = "skip", prompt_, compute_ = "f32";
  std::vector<CLI::Option*> of_model_;
  vfm::cli::SeedOptions seed_;
  vfm::columns::CaptionOptions options_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  CaptionTool tool;
  return vfm::cli::run(argc, argv, tool);
}
