// vfm-caption score: measures how good the captions of shards are.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "caption_model_options.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "columns/score/score.h"
#include "media/isolate/isolated.h"
#include "shard_estimate.h"
#include "verbs.h"

namespace {

class CaptionScoreTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-caption"; }
  std::string description() const override { return "Scores the captions of shards, for filters."; }
  std::string examples() const override {
    return "vfm-caption score --model Qwen2.5-VL-3B-Instruct --clip siglip2-base clips/*.tar\n"
           "vfm-caption score captioned.jsonl | vfm-shard --where 'caption_repetition < 0.2' -o "
           "dataset";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Output");
    columns_.add(options);
    options.group("Output");
    vfm::cli::add_dry_run(options, dry_run_);
    options.group("Models");
    vfm::cli::OptionRow& captioner =
        options.add("--model", score_.captioner, "DIR", "score by a model that captions clips");
    captioner.check(vfm::cli::not_empty)
        .everyday()
        .manual(
            "Score by a captioner in a folder, as for *vfm-caption --from model:*_DIR_. Use the "
            "model and prompt that wrote the captions, or a better model.");
    options.add("--clip", score_.clip, "DIR", "score by a CLIP or SigLIP")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual(
            "Score by a CLIP or SigLIP. The folder must have the image tower, the text tower "
            "and the tokenizer.");
    model_.add_prompt(options, "the question that the captions answer")
        .manual("The question that the captions answer. By default the model describes the clip.");
    model_.add_sight(options);
    model_.add_computing(options);
    for (const char* name : {"--prompt", "--fps", "--window", "--frame-tokens", "--compute"})
      options.row(name).needs(captioner);
    table_ = &options;
  }

  void check() override {
    columns_.input_limits.check_isolation(columns_.hwaccel);
    if (table_->row("--device").given() && !any_model())
      vfm::fail_usage("--device is about a model; name its folder with --model or --clip");
    model_.check();
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override {
    return vfm::media::fork_isolation(columns_.input_limits.limits.isolate);
  }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  long run(vfm::cli::Context& context) override {
    columns_.input_limits.apply();
    vfm::media::begin_isolation();
    score_.inputs = columns_.input.resolved();
    score_.directory = columns_.output.directory;
    score_.force = columns_.output.force;
    score_.limits.member = columns_.member.bytes;
    score_.hardware = model_.decoder(columns_.hwaccel);
    model_.set(score_.model, any_model());
    vfm::share::Slots slots = context.slots(columns_.jobs);
    await_workers(slots, model_.workers());
    return dry_run_
               ? tell_cost(slots)
               : vfm::columns::score_captions(score_, slots, context.progress, context.manifest);
  }

 private:
  bool any_model() const { return !(score_.captioner.empty() && score_.clip.empty()); }

  long tell_cost(vfm::share::Slots& slots) {
    vfm::columns::ScoreCosts costs;
    score_.costs = &costs;
    const auto work = [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
      return vfm::columns::score_captions(score_, slots, progress, manifest);
    };
    return tell_shard_estimate(score_.inputs, score_.directory, slots.threads(), work, false,
                               nullptr, [&](std::string& words) {
                                 words += costs.words();
                                 return costs.to_json();
                               });
  }

  vfm::cli::ColumnOptions columns_;
  CaptionModelOptions model_{columns_.jobs};
  vfm::columns::ScoreOptions score_;
  vfm::cli::Options* table_ = nullptr;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_caption_score() {
  return std::make_unique<CaptionScoreTool>();
}
