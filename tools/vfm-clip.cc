// vfm-clip: cuts videos into clips of one shot each.
// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <memory>
#include <span>

#include "base/encoder_identity.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "clip/clip.h"
#include "clip/part.h"
#include "clip_estimate.h"
#include "clip_shot_options.h"
#include "device_engines.h"
#include "media/isolate/isolated.h"
#include "media/sound/loudness.h"
#include "media/version.h"
#include "models/encoder/picture_encoder.h"
#include "tensor/device.h"
#include "verbs.h"
#include "workers/pictures.h"

namespace {

class ClipTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  std::string description() const override { return "Cuts videos at changes of shot into shards."; }
  std::string examples() const override {
    return "find raw -name '*.mp4' | vfm-clip -o clips > clips.jsonl\n"
           "vfm-clip a.mp4 -o short --max-length 5s --audio aac --report clips.html\n"
           "vfm-clip -o clips --part env > clips.jsonl";
  }

  std::string version_details() const override {
    const std::string loudness = vfm::media::loudness_version();
    return vfm::media::ffmpeg_version() + (loudness.empty() ? "" : loudness + "\n");
  }

  void add_options(vfm::cli::Options& options) override {
    table_ = &options;
    options.group("Input and output");
    input_.add(options, "VIDEO", "videos, pictures, .jsonl files (default: '-')");
    output_.add(options, false, "folder for the shards");
    add_output_options(options);
    add_length_options(options);
    shots_.add(options, options_.recipe);
    add_stitch_options(options);
    add_picture_options(options);
    add_encoder_options(options);
    options.group("Work");
    jobs_.add(options);
    part_.add(options);
    part_.add_waiting(options);
    add_folder_options(options);
    hwaccel_.add(options);
    device_.add_workers(options);
    input_limits_.add(options);
    input_limits_.add_isolation(options);
  }

  void check() override {
    input_limits_.check_isolation(hwaccel_);
    input_limits_.apply();  // before FFmpeg is used
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    recipe.audio = vfm::media::parse_audio_mode(audio_);
    if (!scale_.empty()) recipe.size = vfm::clip::parse_clip_size(scale_);
    if (!fps_.empty()) recipe.rate = vfm::clip::parse_clip_rate(fps_);
    if (into_ == "files") options_.format = vfm::clip::ClipFormat::files;
    if (into_ == "joined") options_.join = vfm::clip::Joining::all;
    if (into_ == "apart") options_.join = vfm::clip::Joining::none;
    const std::size_t colon = encoder_name_.find(':');
    recipe.encoder = encoder_name_.substr(0, colon);
    if (colon != std::string::npos) recipe.preset = encoder_name_.substr(colon + 1);
    check_part();
    check_smart_cut();
    shots_.check(recipe);
    check_stitching();
    check_places();
    if (dry_run_ && recipe.given)
      vfm::fail_usage("--dry-run looks at ten seconds of a video; leave out --spans");
    if (!dry_run_ && output_.directory.empty())
      vfm::fail_usage("name the output folder with -o DIR");
    if (recipe.max_seconds > 0 && recipe.max_seconds < recipe.min_seconds)
      vfm::fail_usage("--max-length is below --min-length: no clip could be both");
    if (options_.shard_bytes == 0) vfm::fail_usage("--shard-size must be above 0");
    vfm::clip::check_encoders(recipe);
    device_.gpus();
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }
  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_gpu(int channel) override {
    using namespace vfm::workers;
    return vfm::workers::serve_gpu(channel, stage_services({{kPictures, open_pictures}}));
  }

  long run(vfm::cli::Context& context) override {
    vfm::media::begin_isolation();
    if (part_.choice.whole()) options_.inputs = input_.resolved();
    options_.directory = output_.directory;
    options_.force = output_.force;
    options_.report = report_.path;
    options_.hardware = engines_.decoder(hwaccel_);
    // Otherwise a thread that waits for sessions could wait for encoders on which no thread works.
    if (engines_.encode(options_.recipe.encoder)) options_.ahead_bytes = 0;
    if (by_model()) open_stitch_model();
    shots_.open(options_);
    vfm::share::Slots slots = context.slots(jobs_);
    if (workers_) slots.set_flow(workers_->flow());
    const auto work = [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
      return part_.choice.whole()
                 ? vfm::clip::run(options_, slots, progress, manifest)
                 : vfm::clip::run_parts(options_, part_.choice, slots, progress, manifest);
    };
    if (dry_run_) return tell_clip_estimate(options_, slots.threads(), work);
    return work(context.progress, context.manifest);
  }

 private:
  /// Throws Error{usage} with the reason `why` if one of the options is given.
  void refuse(const char* why, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (table_->row(name).given()) vfm::fail_usage("{}; leave out {}", why, name);
  }

  void add_output_options(vfm::cli::Options& options) {
    options.add("--into", into_, "shards|joined|apart|files", "how clips are put into files")
        .one_of({"shards", "joined", "apart", "files"})
        .everyday()
        .manual(
            "*shards*: each video has its own shards. Only small videos after the first 1000 "
            "videos of the input share shards (JOINED VIDEOS in *vfm-clips*(7)). *joined*: all "
            "small videos share shards. *apart*: no videos share shards. *files*: each clip is "
            "_DIR/KEY.mp4_ and _DIR/KEY.json_.");
    options
        .flag("--readable-names", options_.readable_names, "name clips by their source and times")
        .manual(
            "Make the clips' keys from the source's name, the clip's start and end, and 8 digits "
            "of a hash, as in _holiday-00h01m02s500-00h01m05s000-1a2b3c4d_. Characters except "
            "ASCII letters, digits, _-_ and _\\__ become _\\__. A key has at most 80 characters. "
            "Default: keys are hashes.");
    vfm::cli::add_bytes_option(options, "--shard-size", options_.shard_bytes,
                               "maximum size of a shard")
        .manual("The maximum size of a shard. A larger clip has its own shard.");
    report_.add(options, "write a page with the shots and clips");
    options.row("--report")
        .manual(
            "Write a page with the time line of each video, the middle frames of clips, and "
            "histograms of measures.");
  }

  void add_length_options(vfm::cli::Options& options) {
    options.group("Where clips begin and end");
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    min_length_ = &vfm::cli::add_seconds_option(options, "--min-length", recipe.min_seconds,
                                                "leave out shorter clips");
    min_length_->everyday().manual(
        "Leave out shorter clips. A video with a single shot is never left out.");
    max_length_ = &vfm::cli::add_seconds_option(options, "--max-length", recipe.max_seconds,
                                                "split longer shots; 0: never");
    max_length_->everyday().manual(
        "Split longer shots into clips of at most this length. With 0, shots are not split.");
    vfm::cli::OptionRow& spans =
        options.add("--spans", options_.spans, "FILE", "cut these spans instead of shots");
    spans.check(vfm::cli::not_empty)
        .repeated()
        .everyday()
        .manual(
            "Cut the spans of this file instead of shots (SPANS in *vfm-clips*(7)). May be given "
            "several times. The defaults of *--min-length* and *--max-length* are not used.");
    stride_ = &vfm::cli::add_seconds_option(options, "--stride", recipe.stride,
                                            "cut clips of this length instead of shots");
    stride_->shown("")
        .excludes(spans)
        .excludes(*max_length_)
        .everyday()
        .manual(
            "Cut consecutive clips of this length instead of shots. A frame belongs to the clip in "
            "which the frame begins.");
  }

  void add_stitch_options(vfm::cli::Options& options) {
    options
        .add("--stitch", stitch_, "builtin:look|DIR|none[:LIKENESS]", "how to join similar shots")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual(
            "The method to join neighbouring shots whose adjacent frames look the same: "
            "*builtin:look*, a model in a folder, or *none*. The model is a CLIP, SigLIP, SigLIP 2 "
            "or DINOv2, as for *vfm-embed*(1). It computes in bf16 on a GPU, and otherwise in f32. "
            "Shots are joined if their likeness is at least 0.6, or 0.82 with a model. _LIKENESS_, "
            "0 to 1, sets another threshold, as in _builtin:look:0.7_. See *vfm-shots*(7).");
    options
        .flag("--stitch-sound", options_.recipe.stitch_sound,
              "let sound help to decide which "
              "shots are joined")
        .manual(
            "If sound continues across a change of shot, less likeness is needed to join the "
            "shots. If sound breaks off, more likeness is needed. See *vfm-shots*(7).");
  }

  void check_stitching() {
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    const std::size_t colon = stitch_.rfind(':');
    const std::string likeness = colon == std::string::npos ? "" : stitch_.substr(colon + 1);
    const bool given = !likeness.empty() && vfm::cli::not_negative(likeness).empty();
    if (given) stitch_.resize(colon);
    recipe.stitch = stitch_ != "none";
    if (!recipe.stitch) refuse("--stitch none joins no shots", {"--stitch-sound"});
    if (by_model()) recipe.stitch_threshold = vfm::curate::kVectorStitchThreshold;
    if (given) recipe.stitch_threshold = std::stod(likeness);
    if (recipe.stitch_threshold > 1) vfm::fail_usage("--stitch: '{}' is not from 0 to 1", likeness);
    if (!by_model()) engines_.check_work("--stitch DIR", hwaccel_, recipe.encoder);
  }

  bool by_model() const { return stitch_ != "builtin:look" && stitch_ != "none"; }

  void open_stitch_model() {
    workers_ = workers_of(device_, jobs_, name());
    const vfm::Device device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    const vfm::DType compute = device == vfm::Device::cuda ? vfm::DType::bf16 : vfm::DType::f32;
    encoder_ = workers_ ? vfm::workers::pictures_in_workers(*workers_, stitch_, compute)
                        : vfm::models::make_picture_encoder(stitch_, device, compute);
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

  void add_picture_options(vfm::cli::Options& options) {
    options.group("Pictures and sound");
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    options.add("--scale", scale_, "WxH|short:N", "size of the clips")
        .check(vfm::cli::not_blank)
        .everyday()
        .manual(
            "Width and height of the clips, such as _640x480_. Pixels become square. _640x-2_ and "
            "_-2x480_ keep the shape. _short:480_ sets the shorter side. Smaller videos are "
            "enlarged.");
    options.add("--fps", fps_, "RATE", "constant frame rate of the clips")
        .check(vfm::cli::not_blank)
        .everyday()
        .manual(
            "Constant frame rate, such as _24_, _23.976_ (24000/1001) or _30000/1001_. Frames are "
            "left out or repeated, but never mixed. The length of a clip is rounded to whole "
            "frames.");
    options.flag("--crop", recipe.crop, "cut off black bars")
        .manual(
            "Cut off rows and columns that are black in all key frames of the video. If there are "
            "fewer than 24 key frames, all frames are examined.");
    options
        .flag("--keep-hdr", recipe.keep_hdr, "make 10-bit clips from HDR videos")

        .manual(
            "Make 10-bit clips from HDR videos, in the source's colours. By default, HDR is "
            "converted to SDR of 8 bits. See *vfm-colour*(7).");
  }

  void add_encoder_options(vfm::cli::Options& options) {
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    options.flag("--smart-cut", recipe.smart, "encode only frames that cannot be copied")
        .everyday()
        .manual(
            "Copy the source's packets from the first key frame of a clip on, and encode only the "
            "frames before this key frame. See COPIED FRAMES in *vfm-clips*(7).");
    options.add("--quality", recipe.quality, "N", "0 best to 51 worst, as x264's CRF")
        .in(0, 51)
        .everyday()
        .manual(
            "Quality from 0 (best) to 51 (worst), on the scale of x264's CRF. For other encoders, "
            "the value is converted to their scales.");
    options.add("--audio", audio_, "drop|copy|aac", "sound of the clips")
        .one_of({"drop", "copy", "aac"})
        .everyday()
        .manual(
            "*drop*: clips are silent. *aac*: sound is re-encoded, exactly as long as the clip. "
            "*copy*: the source's packets are copied. If mp4 cannot store such packets (PCM, FLAC, "
            "TrueHD) or their times (Vorbis), *aac* is used. If FFmpeg cannot decode or name the "
            "sound, an error is recorded, and the clips are silent.");
    options.add("--encoder", encoder_name_, "NAME[:PRESET]", "FFmpeg's name of the video encoder")
        .shown("the first that works here, with a fast preset")
        .manual(
            "FFmpeg's name of the encoder, with or without a preset, such as _libx264:slow_, "
            "_libopenh264_, _h264_nvenc_, _libx265_ or _libsvtav1_. A preset alone, such as "
            "_:slow_, is for the default encoder. Software encoders are tried first. _h264_nvenc_ "
            "works on the GPUs of *--device*. With _h264_nvenc_ each video has one encoder at a "
            "time.");
  }

  void add_folder_options(vfm::cli::Options& options) {
    vfm::cli::add_dry_run(options, dry_run_);
    options.flag("--verify", options_.verify, "compare each clip with its source")
        .manual(
            "Decode each clip, and compare the number and times of frames, and the first and last "
            "frame, with the source. A clip that differs is left out as an error.");
    options.flag("--prune", options_.prune, "remove files of sources that are not in the input")
        .manual(
            "At the end, remove the files of sources that are not in the input. The input must "
            "name each source to keep. See THE FOLDER in *vfm-clips*(7).");
  }

  /// Refuses what cannot be of a part: the list has the inputs and the size of shards, and what
  /// needs the whole input belongs to the work after all parts.
  void check_part() {
    part_.check();
    if (part_.choice.whole()) return;
    if (!input_.inputs.empty())
      vfm::fail_usage("--part takes its videos from the list in '{}'; leave out '{}'",
                      output_.directory, input_.inputs[0]);
    refuse("--part takes its videos from the list of vfm-clip list", {"--null", "--spans"});
    refuse("--part makes shards as the list says", {"--into", "--shard-size"});
    refuse("--part does what is of one part", {"--prune", "--report", "--dry-run"});
    refuse("a finished part is not done again", {"--force"});
  }

  /// Refuses options that would change copied frames.
  void check_smart_cut() {
    if (!options_.recipe.smart) return;
    refuse("--smart-cut copies the source's frames, which cannot be changed",
           {"--scale", "--fps", "--crop"});
    if (input_limits_.limits.isolate)
      vfm::fail_usage(
          "--smart-cut takes packets from a file that --isolate keeps away from this program; "
          "leave one out");
  }

  /// With spans or a stride, shots are not detected or joined, and --max-length has no default
  /// (with spans, --min-length neither).
  void check_places() {
    vfm::clip::ClipRecipe& recipe = options_.recipe;
    recipe.given = !options_.spans.empty();
    if (stride_->given() && recipe.stride <= 0) vfm::fail_usage("--stride must be above 0");
    if (!recipe.given && recipe.stride <= 0) return;
    refuse("--spans and --stride look for no shots",
           {"--threshold", "--no-gradual", "--detector-model", "--stitch-sound"});
    if (by_model())
      vfm::fail_usage("--spans and --stride look for no shots; leave out --stitch {}", stitch_);
    recipe.stitch = false;
    if (!max_length_->given()) recipe.max_seconds = 0;
    if (recipe.given && !min_length_->given()) recipe.min_seconds = 0;
  }

  vfm::cli::Options* table_ = nullptr;
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::PartOptions part_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::ReportOptions report_;
  vfm::cli::OptionRow *min_length_ = nullptr, *max_length_ = nullptr, *stride_ = nullptr;
  ClipShotOptions shots_;
  std::string stitch_ = "builtin:look", into_ = "shards", encoder_name_;
  vfm::cli::WorkerOptions device_;
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-clip"};
  std::unique_ptr<vfm::workers::StageModels> workers_;
  std::unique_ptr<vfm::models::PictureEncoder> encoder_;  // the model of --stitch
  bool dry_run_ = false;
  std::string audio_ = "drop", scale_, fps_;
  vfm::clip::ClipOptions options_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<ClipTool>},
                        {"shots", make_clip_shots},
                        {"unique", make_clip_unique},
                        {"list", make_clip_list},
                        {"status", make_clip_status}});
}
