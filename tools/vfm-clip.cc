// vfm-clip: cuts videos into clips of one shot each.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "jobs/clip.h"

namespace {

class ClipTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  std::string description() const override {
    return "Cuts videos at their changes of shot into shards of clips.";
  }
  std::string example() const override { return "find raw -name '*.mp4' | vfm-clip -o clips"; }

  void add_options(CLI::App& app) override {
    input_.add(app, "VIDEO",
               "videos, pictures, manifests, or '-' for lines on standard input (the default)");
    output_.add(app, false, "folder for the shards");
    jobs_.add(app);
    hwaccel_.add(app);
    app.add_flag("--shots-only", shots_only_, "print the changes of shot and write nothing");
    add_shot_options(app);
    add_clip_options(app);
    report_.add(app, "write a page with the shots and clips");
  }

  void check() override {
    vfm::jobs::ClipRecipe& recipe = options_.recipe;
    recipe.shots.detector = vfm::curate::parse_detector(detector_);
    recipe.audio = vfm::media::parse_audio_mode(audio_);
    if (shots_only_ && !report_.path.empty())
      vfm::fail_usage("--report shows clips, and --shots-only makes none; leave one out");
    if (!shots_only_ && output_.directory.empty())
      vfm::fail_usage("no output folder; give one with -o DIR, or ask for --shots-only");
    if (recipe.max_seconds > 0 && recipe.max_seconds < recipe.min_seconds)
      vfm::fail_usage("--max-length is below --min-length: no clip could be both");
    if (options_.shard_bytes == 0) vfm::fail_usage("--shard-size must be above 0");
  }

  long run(vfm::cli::Context& context) override {
    options_.inputs = input_.resolved();
    options_.directory = output_.directory;
    options_.force = output_.force;
    options_.report = report_.path;
    options_.hardware = vfm::media::choose_hardware(hwaccel_.hwaccel);
    vfm::Slots slots(jobs_.resolved(), context.makeflags);
    if (shots_only_) return vfm::jobs::list_shots(options_, slots, context.progress);
    return vfm::jobs::clip(options_, slots, context.progress);
  }

 private:
  void add_shot_options(CLI::App& app) {
    vfm::jobs::ClipRecipe& recipe = options_.recipe;
    app.add_option("--detector", detector_, "how hard cuts are found")
        ->type_name("content|adaptive|histogram|combined")
        ->check(CLI::IsMember({"content", "adaptive", "histogram", "combined"}))
        ->capture_default_str();
    app.add_option("--threshold", recipe.shots.threshold,
                   "score that makes a cut (defaults: content 27, adaptive 3, histogram 0.5, "
                   "combined 0.38)")
        ->type_name("SCORE")
        ->check(CLI::PositiveNumber)
        ->check(vfm::cli::not_nan);
    app.add_flag("--gradual,!--no-gradual", recipe.shots.gradual,
                 "find fades and dissolves (default), or only hard cuts");
    app.add_option("--strictness", recipe.shots.strictness,
                   "how well a dissolve must fit: above 1 finds fewer, below 1 more")
        ->type_name("FACTOR")
        ->check(CLI::Range(0.1, 2.5))
        ->check(vfm::cli::not_nan)
        ->capture_default_str();
    app.add_option("--stream", recipe.stream,
                   "index of the video stream in the container (default: the one a player shows)")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }

  void add_clip_options(CLI::App& app) {
    vfm::jobs::ClipRecipe& recipe = options_.recipe;
    app.add_flag("--stitch,!--no-stitch", recipe.stitch,
                 "join neighbouring shots whose end and start look the same (default), or not");
    app.add_option("--stitch-threshold", recipe.stitch_threshold,
                   "likeness from which shots are joined; 1 is the same picture")
        ->type_name("LIKENESS")
        ->check(CLI::Range(0.0, 1.0))
        ->check(vfm::cli::not_nan)
        ->capture_default_str();
    vfm::cli::add_seconds_option(app, "--min-length", recipe.min_seconds,
                                 "leave out shorter clips, unless a video has just that one");
    vfm::cli::add_seconds_option(app, "--max-length", recipe.max_seconds,
                                 "split longer shots; 0: never");
    app.add_option("--encoder", recipe.encoder,
                   "FFmpeg's name of the video encoder (default: libx264 or what there is)")
        ->type_name("NAME");
    app.add_option("--quality", recipe.quality, "0 best to 51 worst, as x264's CRF")
        ->type_name("N")
        ->check(CLI::Range(0, 51))
        ->capture_default_str();
    app.add_option("--preset", recipe.preset, "the encoder's preset (default: a fast one)")
        ->type_name("NAME");
    app.add_option("--audio", audio_, "sound of the clips")
        ->type_name("drop|copy|aac")
        ->check(CLI::IsMember({"drop", "copy", "aac"}))
        ->capture_default_str();
    vfm::cli::add_bytes_option(app, "--shard-size", options_.shard_bytes,
                               "a shard ends before it would grow over this");
    app.add_flag("--verify", options_.verify,
                 "decode each clip again and prove its times, first and last frame");
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::ReportOptions report_;
  bool shots_only_ = false;
  std::string detector_ = "combined", audio_ = "drop";
  vfm::jobs::ClipOptions options_;
};

}  // namespace

int main(int argc, char** argv) {
  ClipTool tool;
  return vfm::cli::run(argc, argv, tool);
}
