// vfm-clip shots: prints where the shots of videos begin, and writes nothing.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/meter.h"
#include "cli/options.h"
#include "clip/lists/list_shots.h"
#include "clip_estimate.h"
#include "clip_reading.h"
#include "clip_shot_options.h"
#include "verbs.h"

namespace {

class ClipShotsTool : public ClipReadingTool {
 public:
  std::string description() const override { return "Prints where the shots of videos begin."; }
  std::string examples() const override {
    return "vfm-clip shots a.mp4\n"
           "vfm-clip shots --format otio a.mp4 b.mp4 > cuts.otio\n"
           "vfm-clip shots --explain why.html a.mp4";
  }

  void add_options(vfm::cli::Options& options) override {
    table_ = &options;
    options.group("Input and output");
    input_.add(options, "VIDEO", "videos or .jsonl manifests (default: '-')");
    options.add("--format", format_, "json|csv|edl|otio|chapters", "format of the list")
        .one_of({"json", "csv", "edl", "otio", "chapters"})
        .shown("json; on a terminal a table")
        .everyday()
        .manual("Print the shots in this format. See OUTPUT.");
    explain_.add(options, "write a page with scores and reasons", "--explain");
    options.row("--explain")
        .manual(
            "Also write a page with the score of each video over time, the frames at changes of "
            "shot, and the highest scores without a change. Each change and score has a reason. "
            "The page has at most 100 videos and 240 pairs of frames.");
    options
        .flag("--stitch-sound", stitch_sound_,
              "show on the page of --explain which shots sound "
              "would join")
        .needs(options.row("--explain"))
        .manual(
            "Show on the page of *--explain* which shots *vfm-clip --stitch-sound* would join.");
    vfm::cli::add_dry_run(options, dry_run_);
    options.group("Shots");
    shots_.add(options, options_.recipe);
    options.add("--thresholds", thresholds_, "A,B,...|FROM:TO:STEP", "try each of these thresholds")
        .excludes(shots_.threshold())
        .excludes(options.row("--explain"))
        .everyday()
        .manual(
            "Print the shots that each of these thresholds finds, from one decoding. At most 100 "
            "thresholds; _TO_ is included. Each line of JSON has the field _threshold_.");
    add_work(options);
  }

  void check() override {
    check_work();
    options_.recipe.stitch_sound = stitch_sound_;
    options_.explain = explain_.path;
    shots_.check(options_.recipe);
    using vfm::clip::ShotFormat;
    options_.shot_format = format_ == "csv"        ? ShotFormat::csv
                           : format_ == "edl"      ? ShotFormat::edl
                           : format_ == "otio"     ? ShotFormat::otio
                           : format_ == "chapters" ? ShotFormat::chapters
                                                   : ShotFormat::json;
    if (table_->row("--thresholds").given()) check_thresholds();
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !dry_run_ && !for_people() && options_.shot_format == vfm::clip::ShotFormat::json;
  }

  long run(vfm::cli::Context& context) override {
    options_.hardware = begin_work();
    options_.inputs = input_.resolved();
    if (for_people())
      options_.print_table = [&](const std::string& lines) {
        context.meter.clear();
        vfm::cli::print(lines);
      };
    shots_.open(options_);
    vfm::share::Slots slots = context.slots(jobs_);
    const auto work = [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
      return vfm::clip::list_shots(options_, slots, progress, manifest);
    };
    if (dry_run_) return tell_clip_estimate(options_, slots.threads(), work);
    return work(context.progress, context.manifest);
  }

 private:
  bool for_people() const { return format_.empty() && vfm::cli::stdout_is_terminal(); }

  void check_thresholds() {
    options_.thresholds = vfm::clip::parse_thresholds(thresholds_);
    for (const double score : options_.thresholds)
      shots_.check_score("--thresholds", score);
    if (options_.shot_format != vfm::clip::ShotFormat::json)
      vfm::fail_usage("--format {} has one list of shots; leave out --thresholds", format_);
  }

  vfm::cli::Options* table_ = nullptr;
  vfm::cli::InputOptions input_;
  vfm::cli::ReportOptions explain_;
  ClipShotOptions shots_;
  std::string format_, thresholds_;
  bool dry_run_ = false, stitch_sound_ = false;
  vfm::clip::ClipOptions options_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_clip_shots() {
  return std::make_unique<ClipShotsTool>();
}
