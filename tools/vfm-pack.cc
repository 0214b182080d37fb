// vfm-pack: clips to latents.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "base/error.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "device_workers.h"
#include "media/isolate/isolated.h"
#include "media/version.h"
#include "models/tokenizer.h"
#include "ops/gpu_options.h"
#include "pack/clip_encoder.h"
#include "pack/pack.h"
#include "shard_estimate.h"
#include "shard_parts.h"
#include "tensor/device.h"
#include "verbs.h"

namespace {

vfm::Rational parse_rate(const std::string& text) {
  vfm::Rational rate;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, rate.num);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '/')
    read = std::from_chars(read.ptr + 1, end, rate.den);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (read.ec != std::errc() || read.ptr != end || rate.num < 1 || rate.den < 1 ||
      rate.num > kMost || rate.den > kMost)
    vfm::fail_usage("--fps: '{}' is not a rate; write 24 or 24000/1001", text);
  return rate;
}

/// Returns data::WindowRule::most for "all", "middle" or "8".
int parse_windows(const std::string& text) {
  if (text == "all") return 0;
  if (text == "middle") return 1;
  int windows = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, windows);
  if (read.ec != std::errc() || read.ptr != end || windows < 1 || windows > vfm::data::kMostWindows)
    vfm::fail_usage("--windows: '{}' is neither all nor middle nor a number from 1 to {}", text,
                    vfm::data::kMostWindows);
  return windows;
}

class PackTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-pack"; }
  std::string description() const override {
    return "Encodes the clips of shards as latents for training.";
  }
  std::string examples() const override {
    return "vfm-shard -o dataset embedded.jsonl | vfm-pack -o latents\n"
           "vfm-pack --tokenizer Cosmos-1.0-Tokenizer-CV8x8x8 -o latents dataset\n"
           "vfm-pack --device all --dry-run dataset";
  }
  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + vfm::ops::gpu_versions();
  }

  void add_options(vfm::cli::Options& options) override {
    add_files(options);
    add_clips(options);
    add_tokenizer(options);
    options.group("Work");
    jobs_.add(options);
    part_.add(options);
    part_.add_follow(options);
    device_.add_workers(options).everyday();
    hwaccel_.add(options);
    member_.add(options);
    input_limits_.add(options);
    input_limits_.add_isolation(options);
  }

  void check() override {
    input_limits_.check_isolation(hwaccel_);
    check_part(part_, output_.force, dry_run_, report_.path);
    if (output_.directory.empty() && !dry_run_)
      vfm::fail_usage("no output folder; give one with -o DIR");
    if (!fps_.empty()) options_.clip.fps = parse_rate(fps_);
    options_.clip.windows = parse_windows(windows_);
    if (options_.clip.overlap >= options_.clip.frames)
      vfm::fail_usage("--overlap: {} is not less than the {} frames of a window",
                      options_.clip.overlap, options_.clip.frames);
    options_.clip.crop =
        crop_ == "random" ? vfm::data::CropMode::random : vfm::data::CropMode::centre;
    options_.tokenizer = vfm::models::tokenizer_config(tokenizer_);
    if (compute_ != "auto") options_.tokenizer.compute = compute_;
    for (const auto& [value, option] : {std::pair(channels_, &options_.tokenizer.channels),
                                        {time_factor_, &options_.tokenizer.time_factor},
                                        {space_factor_, &options_.tokenizer.space_factor}})
      if (value > 0) *option = value;
    // Checks a builtin tokenizer. A tokenizer of a folder is loaded only once, when work begins.
    if (options_.tokenizer.path.empty())
      vfm::models::make_tokenizer(options_.tokenizer, vfm::Device::cpu, options_.tokenizer_memory);
    device_.gpus();
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_gpu(int channel) override {
    return vfm::workers::serve_gpu(
        channel, vfm::workers::stage_services({{vfm::pack::kClips, vfm::pack::open_clips}}));
  }

  long run(vfm::cli::Context& context) override {
    input_limits_.apply();
    vfm::media::begin_isolation();
    options_.inputs = input_.resolved();
    workers_ = workers_of(device_, jobs_, name());
    options_.workers = workers_.get();
    options_.device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    // If workers compute on a GPU, they also decode there.
    if (workers_ && options_.device == vfm::Device::cuda)
      options_.hwaccel = hwaccel_.hwaccel;
    else
      options_.clip.hardware = engines_.decoder(hwaccel_);
    options_.output = output_.directory;
    part_work_ = part_work("pack", part_, options_.output, options_.inputs,
                           vfm::media::ffmpeg_version(), context.progress);
    options_.parts = part_work_ ? &*part_work_ : nullptr;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    options_.clip.seed = seed_.seed;
    options_.report = report_.path;
    vfm::share::Slots slots = context.slots(jobs_);
    await_workers(slots, workers_.get());
    if (dry_run_) {
      options_.report.clear();
      return tell_shard_estimate(options_.inputs, options_.output, slots.threads(),
                                 [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
                                   return vfm::pack::run(options_, slots, progress, manifest);
                                 });
    }
    return vfm::pack::run(options_, slots, context.progress, context.manifest);
  }

 private:
  void add_files(vfm::cli::Options& options) {
    options.group("Input and output");
    input_.add_shards(options);
    output_.add(options, false, "write the latents to this folder");
    options.row("--output").manual("Write the latents to this folder.");
    options.row("--force").manual("Replace the latents in the folder.");
    report_.add(options, "write a page with originals and decoded latents");
    options.row("--report")
        .manual(
            "Write a page with original and decoded frames, and histograms of PSNR and lengths.");
    vfm::cli::add_dry_run(options, dry_run_);
  }

  void add_clips(vfm::cli::Options& options) {
    options.group("Pictures and frames");
    options.add("--size", options_.clip.size, "N", "area of the pictures: about N x N pixels")
        .in(16, 8192)
        .everyday()
        .manual("Area of the pictures: about _N_ x _N_ pixels.");
    options.add("--frames", options_.clip.frames, "N", "maximum number of frames of a window")
        .in(1, 100'000)
        .everyday()
        .manual("The maximum number of frames of a window.");
    options.add("--windows", windows_, "all|N|middle", "encode these windows of a clip")
        .everyday()
        .manual(
            "*all*: encode all windows of a clip, one after another. _N_: encode at most _N_ "
            "windows, spread over the clip. *middle*: encode one window, in the middle.");
    options
        .add("--overlap", options_.clip.overlap, "N", "frames that a window shares with the next")
        .in(0, 99'999)
        .manual(
            "Number of frames that a window shares with the next window. Must be less than "
            "*--frames*.");
    options.add("--fps", fps_, "N[/D]", "take frames at this rate, by time")
        .shown("all frames")
        .everyday()
        .manual("Take the frames that are shown at regular times, _N_/_D_ a second.");
    options.add("--crop", crop_, "centre|random", "part of a larger or longer clip to keep")
        .one_of({"centre", "random"})
        .manual(
            "The part to keep of frames that are larger than the picture, and of clips that are "
            "longer than their windows. All windows of a clip show the same part of the picture.");
    seed_.add(options);
    options.row("--seed").manual("Seed of *--crop random*.");
  }

  void add_tokenizer(vfm::cli::Options& options) {
    options.group("Tokenizer");
    options
        .add("--tokenizer", tokenizer_, "builtin:wavelet|builtin:fsq|DIR",
             "encode with this tokenizer")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual("Encode with a builtin tokenizer, or a tokenizer from a folder. See TOKENIZERS.");
    options
        .add("--compute", compute_, "auto|f32|bf16",
             "number format of a tokenizer from a "
             "folder")
        .one_of({"auto", "f32", "bf16"})
        .manual(
            "The number format of a tokenizer from a folder. *auto*: f32 on the CPU, bf16 on a "
            "GPU. *bf16* is several times faster on processors with bf16 instructions, and uses "
            "the tensor cores of a GPU.");
    options.add("--channels", channels_, "N", "channels of builtin:wavelet")
        .in(1, 1'000'000)
        .shown("24")
        .everyday()
        .manual("Channels of a latent of *builtin:wavelet*.");
    options
        .add("--time-factor", time_factor_, "N",
             "video frames in each latent frame after the "
             "first")
        .in(1, 1'000'000)
        .shown("8; builtin:fsq 4")
        .manual("Video frames in each latent frame after the first: 1, 2, 4, 8 or 16.");
    options.add("--space-factor", space_factor_, "N", "pixels in a latent pixel, in x and in y")
        .in(1, 1'000'000)
        .shown("8; builtin:fsq 4")
        .manual("Pixels in a latent pixel, in x and in y: 2, 4, 8 or 16.");
    vfm::cli::add_tokenizer_memory(options, options_.tokenizer_memory)
        .manual(
            "Maximum memory for activations of a tokenizer from a folder, for each clip that is "
            "being encoded. With less memory, fewer frames are encoded at once, and the latents "
            "are the same. If clips of *--size* and *--frames* need more memory, an error says how "
            "much before the work begins. If only a larger clip needs more memory, only this clip "
            "fails. Weights are not counted. Default: no limit; about a million pixels are encoded "
            "at once.");
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::PartOptions part_;
  std::optional<vfm::shard::PartTask> part_work_;
  vfm::cli::MemberOptions member_;
  vfm::cli::WorkerOptions device_;
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-pack"};
  std::unique_ptr<vfm::workers::StageModels> workers_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::ReportOptions report_;
  vfm::pack::PackOptions options_;
  std::string fps_, windows_ = "all", crop_ = "centre", tokenizer_ = "builtin:wavelet",
                    compute_ = "auto";
  int channels_ = 0, time_factor_ = 0, space_factor_ = 0;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(
      argc, argv,
      {{"", vfm::cli::make<PackTool>}, {"plan", make_pack_plan}, {"status", make_pack_status}});
}
