// vfm-clip: cuts videos into clips of one shot each.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <span>

#include "base/encoder_identity.h"
#include "base/json.h"
#include "cards/pictures.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "clip/clip.h"
#include "clip_shot_options.h"
#include "device_engines.h"
#include "media/decoder.h"
#include "media/isolated.h"
#include "media/loudness.h"
#include "media/version.h"
#include "models/encoder/picture_encoder.h"
#include "tensor/device.h"

namespace {

class ClipTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  std::string description() const override {
    return "Cuts videos at their changes of shot into shards of clips.";
  }
  std::string examples() const override { return "find raw -name '*.mp4' | vfm-clip -o clips"; }

  std::string version_details() const override {
    const std::string loudness = vfm::media::loudness_version();
    return vfm::media::ffmpeg_version() + (loudness.empty() ? "" : loudness + "\n");
  }

  void add_options(vfm::cli::Options& options) override {
    CLI::App& app = options.app();
    input_.add(options, "VIDEO",
               "videos, pictures, manifests, or '-' for lines on standard input (the default)");
    output_.add(options, false, "folder for the shards");
    jobs_.add(options);
    vfm::cli::add_bytes_option(options, "--ahead", options_.ahead_bytes,
                               "memory a slot for frames that wait for an encoder");
    hwaccel_.add(options);
    input_limits_.add(options);
    input_limits_.add_isolation(options);
    app.add_flag("--shots-only", shots_only_, "print the changes of shot and write nothing");
    shots_.add(options, options_.recipe);
    add_unique_options(app);
    add_stitch_options(options);
    add_clip_options(options);
    add_place_options(options);
    app.add_option(
           "--format", format_,
           "of clips: shards (default) or files; of --shots-only: json (default), csv, edl, otio, "
           "chapters")
        ->type_name("NAME")
        ->check(CLI::IsMember({"shards", "files", "json", "csv", "edl", "otio", "chapters"}));
    app.add_option("--names", names_, "keys of the clips: a hash, or the source's name and times")
        ->type_name("hash|readable")
        ->check(CLI::IsMember({"hash", "readable"}))
        ->capture_default_str();
    add_picture_options(app);
    report_.add(options, "write a page with the shots and clips");
    explain_.add(options, "with --shots-only: write a page with scores and decisions", "--explain");
    vfm::cli::add_dry_run(options, dry_run_);
    for (const char* cutting : {"--shots-only", "--spans", "--stride", "--format", "--names",
                                "--report", "--explain", "--prune", "--verify", "--dry-run"})
      app.get_option("--unique")->excludes(app.get_option(cutting));
  }

  void check() override {
    input_limits_.check_isolation(hwaccel_);
    input_limits_.apply();  // FFmpeg takes them when it is first used
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    recipe.audio = vfm::media::parse_audio_mode(audio_);
    recipe.deinterlace = deinterlace_ == "auto";
    if (!scale_.empty()) recipe.size = vfm::clip::parse_clip_size(scale_);
    if (!fps_.empty()) recipe.rate = vfm::clip::parse_clip_rate(fps_);
    recipe.crop = crop_ == "auto";
    recipe.keep_hdr = hdr_ == "keep";
    recipe.smart = encode_ == "smart";
    check_encoding();
    shots_.check(recipe.shots);
    check_stitching();
    check_cutting();
    check_format();
    if (share_->count() > 0 && !unique_) vfm::fail_usage("--unique-share is of --unique");
    if (shots_only_ && !report_.path.empty())
      vfm::fail_usage("--report shows clips, and --shots-only makes none; leave one out");
    if (!explain_.path.empty() && !shots_only_)
      vfm::fail_usage("--explain shows how shots are found; it needs --shots-only");
    if (!explain_.path.empty() && shots_.has_thresholds())
      vfm::fail_usage("--explain is of one threshold; leave out --thresholds");
    if (shots_only_ && options_.check)
      vfm::fail_usage("--check is of a folder of clips, and --shots-only has none; leave one out");
    if (shots_only_ && options_.prune)
      vfm::fail_usage("--prune clears a folder of clips, and --shots-only has none; leave one out");
    if (dry_run_ && recipe.given)
      vfm::fail_usage("--dry-run looks at ten seconds of a video; leave out --spans");
    if (!shots_only_ && !dry_run_ && output_.directory.empty())
      vfm::fail_usage("no output folder; give one with -o DIR, or ask for --shots-only");
    if (recipe.max_seconds > 0 && recipe.max_seconds < recipe.min_seconds)
      vfm::fail_usage("--max-length is below --min-length: no clip could be both");
    if (options_.shard_bytes == 0) vfm::fail_usage("--shard-size must be above 0");
    if (!shots_only_ && !unique_) vfm::clip::check_encoders(recipe);
    devices_.cards();
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !dry_run_ && options_.shot_format == vfm::clip::ShotFormat::json;
  }
  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_card(int channel) override {
    using namespace vfm::cards;
    return vfm::cards::serve_card(channel, stage_services({{kPictures, open_pictures}}));
  }

  long run(vfm::cli::Context& context) override {
    vfm::media::begin_isolation();
    options_.inputs = input_.resolved();
    options_.directory = output_.directory;
    options_.force = output_.force;
    options_.report = report_.path, options_.explain = explain_.path;
    options_.hardware = engines_.decoder(hwaccel_);
    // Who waits to open an encoder would wait for ones that no thread is at.
    if (!unique_ && !shots_only_ && engines_.encode(options_.recipe.encoder))
      options_.ahead_bytes = 0;
    if (!unique_ && !stitch_model_.empty()) open_stitch_model();
    if (!unique_) shots_.open(options_);
    vfm::Slots slots = context.slots(jobs_);
    if (workers_) slots.set_flow(workers_->flow());
    if (unique_) return vfm::clip::find_unique(options_, slots, context.progress, context.manifest);
    if (dry_run_) return estimate(slots);
    if (shots_only_)
      return vfm::clip::list_shots(options_, slots, context.progress, context.manifest);
    return vfm::clip::run(options_, slots, context.progress, context.manifest);
  }

 private:
  long estimate(vfm::Slots& slots) {
    options_.report.clear();
    options_.explain.clear();
    options_.most_seconds = vfm::cli::kEstimateSeconds;
    options_.shot_format = vfm::clip::ShotFormat::json;  // the others go to standard output
    return vfm::cli::tell_estimate(
        {.inputs = options_.inputs,
         .folder = options_.directory,
         .input = vfm::cli::estimate_input<vfm::io::ManifestReader>(options_.inputs),
         .kind = "video",
         .jobs = slots.threads(),
         .work =
             [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
               return shots_only_ ? vfm::clip::list_shots(options_, slots, progress, manifest)
                                  : vfm::clip::run(options_, slots, progress, manifest);
             },
         .seconds =
             [&](const vfm::io::Record& video) {
               const vfm::media::Decoder decoder(video.path(), {.stream = options_.recipe.stream});
               return decoder.info().duration;
             },
         .samples = nullptr});
  }

  void add_unique_options(CLI::App& app) {
    app.add_flag("--unique", unique_,
                 "print the sources that show what no other one does, and cut nothing");
    share_ = app.add_option("--unique-share", options_.unique_share,
                            "leave out a source if another one shows so much of it")
                 ->type_name("PART")
                 ->check(CLI::Range(0.05, 1.0))
                 ->check(vfm::cli::not_nan)
                 ->capture_default_str();
  }

  void add_stitch_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    app.add_flag("--stitch,!--no-stitch", recipe.stitch,
                 "join neighbouring shots whose end and start look the same (default), or not");
    auto* model = app.add_option("--stitch-model", stitch_model_,
                                 "what says so: a CLIP, SigLIP or DINOv2, not the built-in look");
    model->type_name("DIR")->check(vfm::cli::not_empty);
    stitch_threshold_ =
        app.add_option("--stitch-threshold", recipe.stitch_threshold,
                       "likeness from which shots are joined; 1 is the same picture (default: "
                       "0.6, of --stitch-model 0.82)")
            ->type_name("LIKENESS")
            ->check(CLI::Range(0.0, 1.0))
            ->check(vfm::cli::not_nan);
    options.add("--stitch-sound", stitch_sound_, "off|on",
                "sound that goes on, or breaks, moves that threshold, or not")
        .one_of({"off", "on"});
    device_.add(options);
    app.get_option("--device")->needs(model);
    devices_.add(options);
    app.add_option("--compute", compute_, "of --stitch-model; auto: f32, bf16 on a GPU")
        ->type_name("DTYPE")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->needs(model)
        ->capture_default_str();
  }

  void check_stitching() {
    options_.recipe.stitch_sound = stitch_sound_ == "on";
    if (options_.recipe.stitch_sound && !options_.recipe.stitch)
      vfm::fail_usage("--no-stitch joins no shots; leave out --stitch-sound on");
    if (stitch_model_.empty())
      return engines_.check_work("--stitch-model", hwaccel_,
                                 shots_only_ ? "" : options_.recipe.encoder);
    if (shots_only_) vfm::fail_usage("--shots-only joins no shots; leave out --stitch-model");
    if (!options_.recipe.stitch)
      vfm::fail_usage("--no-stitch joins no shots; leave out --stitch-model");
    if (stitch_threshold_->count() == 0)
      options_.recipe.stitch_threshold = vfm::curate::kVectorStitchThreshold;
  }

  void open_stitch_model() {
    workers_ = workers_of(devices_, jobs_, name());
    const vfm::Device device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    const bool low = compute_ == "bf16" || (compute_ == "auto" && device == vfm::Device::cuda);
    const vfm::DType compute = low ? vfm::DType::bf16 : vfm::DType::f32;
    encoder_ = workers_ ? vfm::cards::pictures_in_workers(*workers_, stitch_model_, compute)
                        : vfm::models::make_picture_encoder(stitch_model_, device, compute);
    if (workers_) workers_->start();
    options_.recipe.stitch_model = vfm::encoder_identity(encoder_->config());
    options_.recipe.stitch_model["rule"] = "cosine of the last and the first frame";
    options_.stitch_vectors = [this](std::span<const vfm::media::RgbImage> pictures) {
      std::vector<vfm::models::PictureView> views;
      for (const vfm::media::RgbImage& picture : pictures)
        views.push_back({picture.width, picture.height, picture.pixels});
      return encoder_->encode(views);
    };
  }

  void add_clip_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    min_length_ =
        &vfm::cli::add_seconds_option(options, "--min-length", recipe.min_seconds,
                                      "leave out shorter clips, unless a video has just that one");
    max_length_ = &vfm::cli::add_seconds_option(options, "--max-length", recipe.max_seconds,
                                                "split longer shots; 0: never");
    app.add_option("--encode", encode_, "all frames of a clip, or only those that cannot be copied")
        ->type_name("full|smart")
        ->check(CLI::IsMember({"full", "smart"}))
        ->capture_default_str();
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
    app.add_option("--deinterlace", deinterlace_,
                   "make whole pictures of frames that the source calls interlaced, or not")
        ->type_name("auto|off")
        ->check(CLI::IsMember({"auto", "off"}))
        ->capture_default_str();
    vfm::cli::add_bytes_option(options, "--shard-size", options_.shard_bytes,
                               "a shard ends before it would grow over this");
    app.add_option("--join", join_,
                   "small videos that share shards: those after the first 1000, all, or none")
        ->type_name("many|all|none")
        ->check(CLI::IsMember({"many", "all", "none"}))
        ->capture_default_str();
    app.add_flag("--check", options_.check,
                 "read all sources, also those that did not change by size, times and inode");
    app.add_flag("--prune", options_.prune,
                 "remove from the folder what is of sources that are not in the input");
    app.add_flag("--verify", options_.verify,
                 "decode each clip and compare its times, first and last frame");
  }

  /// What is copied is as it is in the source.
  void check_encoding() const {
    const vfm::clip::ClipRecipe& recipe = options_.recipe;
    if (!recipe.smart) return;
    const char* other = recipe.size.any()     ? "--scale"
                        : recipe.rate.num > 0 ? "--fps"
                        : recipe.crop         ? "--crop auto"
                                              : nullptr;
    if (other)
      vfm::fail_usage(
          "--encode smart copies the source's frames, and {} changes them; leave one out", other);
    if (input_limits_.limits.isolate)
      vfm::fail_usage(
          "--encode smart takes packets from a file that --isolate keeps away from this program; "
          "leave one out");
  }

  /// Where places are given, nothing is detected, joined or left out but on request.
  void check_cutting() {
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    recipe.given = !options_.spans.empty();
    if (stride_->given() && recipe.stride <= 0) vfm::fail_usage("--stride must be above 0");
    if (!recipe.given && recipe.stride <= 0) return;
    if (shots_only_)
      vfm::fail_usage("--shots-only looks for shots; leave out --spans and --stride");
    recipe.stitch = false;
    if (!max_length_->given()) recipe.max_seconds = 0;
    if (recipe.given && !min_length_->given()) recipe.min_seconds = 0;
  }

  void check_format() {
    const bool of_clips = format_ == "shards" || format_ == "files";
    if (of_clips && shots_only_)
      vfm::fail_usage("--format {} is of clips; --shots-only has json, csv, edl, otio and chapters",
                      format_);
    if (!of_clips && !shots_only_ && !format_.empty())
      vfm::fail_usage("--format {} is of --shots-only; clips have shards and files", format_);
    options_.format =
        format_ == "files" ? vfm::clip::ClipFormat::files : vfm::clip::ClipFormat::shards;
    options_.readable_names = names_ == "readable";
    options_.join = join_ == "all"    ? vfm::clip::Joining::all
                    : join_ == "none" ? vfm::clip::Joining::none
                                      : vfm::clip::Joining::many;
    if (join_ == "all" && options_.format == vfm::clip::ClipFormat::files)
      vfm::fail_usage("--join all is of shards; leave out --format files");
    options_.shot_format = format_ == "csv"        ? vfm::clip::ShotFormat::csv
                           : format_ == "edl"      ? vfm::clip::ShotFormat::edl
                           : format_ == "otio"     ? vfm::clip::ShotFormat::otio
                           : format_ == "chapters" ? vfm::clip::ShotFormat::chapters
                                                   : vfm::clip::ShotFormat::json;
    if (!shots_.has_thresholds()) return;
    if (!shots_only_) vfm::fail_usage("--thresholds lists shots; it needs --shots-only");
    if (options_.shot_format != vfm::clip::ShotFormat::json)
      vfm::fail_usage("--thresholds has a line of JSON for each; leave out --format {}", format_);
    options_.thresholds = shots_.thresholds();
  }

  void add_place_options(vfm::cli::Options& options) {
    auto& spans = options.add("--spans", options_.spans, "FILE",
                              "cut these spans instead of shots: lines of JSON, CSV or EDL");
    spans.check(vfm::cli::not_empty).repeated();
    stride_ = &vfm::cli::add_seconds_option(options, "--stride", options_.recipe.stride,
                                            "cut clips of this length instead of shots");
    stride_->excludes(spans).excludes(*max_length_);
    for (const char* detection :
         {"--detector", "--detector-model", "--threshold", "--gradual", "--strictness", "--stitch",
          "--stitch-threshold", "--stitch-model", "--stitch-sound"})
      for (vfm::cli::OptionRow* given : {&spans, stride_})
        given->excludes(options.row(detection));
  }

  void add_picture_options(CLI::App& app) {
    app.add_option("--scale", scale_,
                   "size of the clips: 640x480, 640x-2 (-2: what keeps the shape), or short:480")
        ->type_name("SIZE")
        ->check(vfm::cli::not_blank);
    app.add_option("--fps", fps_, "constant frame rate of the clips: 24, 23.976, 30000/1001")
        ->type_name("RATE")
        ->check(vfm::cli::not_blank);
    app.add_option("--crop", crop_, "cut off the black bars that a video has all through")
        ->type_name("none|auto")
        ->check(CLI::IsMember({"none", "auto"}))
        ->capture_default_str();
    app.add_option("--hdr", hdr_, "HDR becomes SDR, or stays in clips of 10 bits")
        ->type_name("tone-map|keep")
        ->check(CLI::IsMember({"tone-map", "keep"}))
        ->capture_default_str();
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::ReportOptions report_, explain_;
  vfm::cli::OptionRow *min_length_ = nullptr, *max_length_ = nullptr, *stride_ = nullptr;
  CLI::Option *stitch_threshold_ = nullptr, *share_ = nullptr;
  ClipShotOptions shots_;
  vfm::cli::DeviceOptions device_;
  std::string stitch_model_, stitch_sound_ = "off", compute_ = "auto";
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, jobs_, "vfm-clip"};
  std::unique_ptr<vfm::cards::StageModels> workers_;      // of these
  std::unique_ptr<vfm::models::PictureEncoder> encoder_;  // in stitch_model_
  bool shots_only_ = false, dry_run_ = false, unique_ = false;
  std::string audio_ = "drop", deinterlace_ = "auto", encode_ = "full", join_ = "many";
  std::string scale_, fps_, crop_ = "none", hdr_ = "tone-map", format_, names_ = "hash";
  vfm::clip::ClipOptions options_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<ClipTool>}});
}
