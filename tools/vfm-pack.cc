// vfm-pack: clips to latents, and plans of packs.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "device_workers.h"
#include "media/isolated.h"
#include "media/version.h"
#include "models/tokenizer.h"
#include "ops/gpu_options.h"
#include "pack/clip_encoder.h"
#include "pack/pack.h"
#include "shard_estimate.h"
#include "tensor/device.h"

namespace {

/// "24", "24000/1001".
vfm::Rational parse_rate(const std::string& text) {
  vfm::Rational rate;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, rate.num);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '/')
    read = std::from_chars(read.ptr + 1, end, rate.den);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (read.ec != std::errc() || read.ptr != end || rate.num < 1 || rate.den < 1 ||
      rate.num > kMost || rate.den > kMost)
    vfm::fail_usage("--fps: '{}' is no rate; write 24 or 24000/1001", text);
  return rate;
}

/// "all", "middle", "8": as data::WindowRule::most.
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

/// "1,2,2".
vfm::data::Patch parse_patch(const std::string& text) {
  vfm::data::Patch patch;
  int read = 0;
  const int found =
      std::sscanf(text.c_str(), "%5d,%5d,%5d%n", &patch.frames, &patch.height, &patch.width, &read);
  if (found != 3 || read != static_cast<int>(text.size()) || patch.frames < 1 || patch.height < 1 ||
      patch.width < 1)
    vfm::fail_usage("--patch: '{}' is no patch; write frames,height,width as in 1,2,2", text);
  return patch;
}

class PackTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-pack"; }
  std::string description() const override {
    return "Encodes the clips of shards as latents for training, and plans packs of them.";
  }
  std::string examples() const override { return "vfm-shard -o dataset | vfm-pack -o latents"; }
  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + vfm::ops::gpu_versions();
  }

  void add_options(vfm::cli::Options& options) override {
    input_.add_shards(options);
    output_.add(options, false, "folder for the latents");
    jobs_.add(options);
    member_.add(options);
    device_.add(options);
    devices_.add(options);
    hwaccel_.add(options);
    input_limits_.add(options);
    input_limits_.add_isolation(options);
    seed_.add(options);
    add_clip_options(options);
    add_tokenizer_options(options);
    add_plan_options(options);
    report_.add(options, "write a page with originals and decoded latents");
    vfm::cli::add_dry_run(options, dry_run_);
  }

  void check() override {
    input_limits_.check_isolation(hwaccel_);
    if (plan_) {
      if (dry_run_) vfm::fail_usage("--dry-run tells how long latents take; leave out --plan");
      for (const auto& [given, name] : {std::pair(!output_.directory.empty(), "--output"),
                                        {!report_.path.empty(), "--report"},
                                        {!devices_.devices.empty(), "--devices"}})
        if (given) vfm::fail_usage("--plan writes nothing: leave {} out", name);
      plan_options_.patch = parse_patch(patch_);
      return;
    }
    if (output_.directory.empty() && !dry_run_)
      vfm::fail_usage("no output folder; give one with -o DIR, or ask for --plan");
    if (!fps_.empty()) options_.clip.fps = parse_rate(fps_);
    options_.clip.windows = parse_windows(windows_);
    if (options_.clip.overlap >= options_.clip.frames)
      vfm::fail_usage("--overlap: {} frames of windows of {} would be in both; take fewer",
                      options_.clip.overlap, options_.clip.frames);
    options_.clip.crop =
        crop_ == "random" ? vfm::data::CropMode::random : vfm::data::CropMode::centre;
    options_.tokenizer = vfm::models::tokenizer_config(tokenizer_);
    options_.tokenizer.compute = compute_;
    options_.tokenizer.channels = channels_;
    options_.tokenizer.time_factor = time_factor_;
    options_.tokenizer.space_factor = space_factor_;
    // One of a folder is loaded once, when all else is known to be right.
    if (options_.tokenizer.path.empty())
      vfm::models::make_tokenizer(options_.tokenizer, vfm::Device::cpu, options_.tokenizer_memory);
    devices_.cards();
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !plan_ && !dry_run_; }

  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  int serve_card(int channel) override {
    return vfm::cards::serve_card(
        channel, vfm::cards::stage_services({{vfm::pack::kClips, vfm::pack::open_clips}}));
  }

  long run(vfm::cli::Context& context) override {
    input_limits_.apply();
    vfm::media::begin_isolation();
    if (plan_) {
      if (input_.inputs.size() != 1 || input_.inputs[0] == "-")
        vfm::fail_usage("--plan takes one folder of latents");
      plan_options_.directory = input_.inputs[0];
      plan_options_.seed = seed_.seed;
      vfm::pack::print_plan(plan_options_);
      return 0;
    }
    options_.inputs = input_.resolved();
    workers_ = workers_of(devices_, jobs_, name());
    options_.workers = workers_.get();
    options_.device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    // Who decodes on a GPU that computes, too, is the one who computes there.
    if (workers_ && options_.device == vfm::Device::cuda)
      options_.hwaccel = hwaccel_.hwaccel;
    else
      options_.clip.hardware = engines_.decoder(hwaccel_);
    options_.output = output_.directory;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    options_.clip.seed = seed_.seed;
    options_.report = report_.path;
    vfm::Slots slots = context.slots(jobs_);
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
  void add_clip_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    app.add_option("--size", options_.clip.size,
                   "area of the pictures: about N x N pixels, in the shape of the clip")
        ->type_name("N")
        ->check(CLI::Range(16, 8192))
        ->capture_default_str();
    app.add_option("--frames", options_.clip.frames, "most frames of a window of a clip")
        ->type_name("N")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option(
           "--windows", windows_,
           "windows of a clip: all that follow one another, N spread over it, or its middle")
        ->type_name("all|N|middle")
        ->capture_default_str();
    app.add_option("--overlap", options_.clip.overlap, "frames that a window shares with the next")
        ->type_name("N")
        ->check(CLI::Range(0, 99'999))
        ->capture_default_str();
    app.add_option("--fps", fps_, "take frames at this rate, by time (default: all frames)")
        ->type_name("N[/D]");
    app.add_option("--crop", crop_, "what is left when a clip is larger or longer")
        ->type_name("centre|random")
        ->check(CLI::IsMember({"centre", "random"}))
        ->capture_default_str();
  }

  void add_tokenizer_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    app.add_option("--tokenizer", tokenizer_, "what makes latents of pixels")
        ->type_name("builtin:wavelet|builtin:fsq|DIR")
        ->check(vfm::cli::not_empty)
        ->capture_default_str();
    app.add_option(
           "--compute", compute_,
           "what a tokenizer of a folder computes in (default: on the CPU f32, on a GPU bf16)")
        ->type_name("f32|bf16")
        ->check(CLI::IsMember({"f32", "bf16"}));
    app.add_option("--channels", channels_, "builtin:wavelet: channels of a latent (default 24)")
        ->type_name("N");
    app.add_option("--time-factor", time_factor_,
                   "frames in a latent frame, after the first (default 8; builtin:fsq 4)")
        ->type_name("N");
    app.add_option("--space-factor", space_factor_,
                   "pixels in a latent pixel, in x and in y (default 8; builtin:fsq 4)")
        ->type_name("N");
    vfm::cli::add_tokenizer_memory(options, options_.tokenizer_memory);
  }

  void add_plan_options(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    CLI::Option* plan = app.add_flag("--plan", plan_, "print the packs that training would make");
    app.add_option("--tokens", plan_options_.packs.tokens, "with --plan: tokens in a pack")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000))
        ->needs(plan)
        ->capture_default_str();
    app.add_option("--window", plan_options_.packs.window, "with --plan: samples looked at")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000'000))
        ->needs(plan)
        ->capture_default_str();
    app.add_option("--patch", patch_, "with --plan: latent pixels in a token")
        ->type_name("T,H,W")
        ->needs(plan)
        ->capture_default_str();
    app.add_option("--epoch", plan_options_.epoch, "with --plan: which epoch, from 0")
        ->type_name("N")
        ->needs(plan)
        ->capture_default_str();
    app.add_option("--split", plan_options_.split, "with --plan: which split")
        ->type_name("NAME")
        ->needs(plan)
        ->capture_default_str();
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::MemberOptions member_;
  vfm::cli::DeviceOptions device_;
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, jobs_, "vfm-pack"};
  std::unique_ptr<vfm::cards::StageModels> workers_;  // of these
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::ReportOptions report_;
  vfm::pack::PackOptions options_;
  vfm::pack::PlanOptions plan_options_;
  std::string fps_, windows_ = "all", crop_ = "centre", tokenizer_ = "builtin:wavelet",
                    patch_ = "1,2,2", compute_;
  std::optional<int> channels_, time_factor_, space_factor_;
  bool plan_ = false, dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<PackTool>}});
}
