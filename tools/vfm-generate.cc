// vfm-generate: prompts in, clips out.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/slots.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "generate/decode_latents.h"
#include "generate/generate.h"
#include "generate/generate_cost.h"
#include "media/version.h"
#include "ops/gpu_options.h"
#include "tensor/device.h"

namespace {

class GenerateTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-generate"; }
  std::string description() const override {
    return "Makes video clips from text with a model that vfm-train trained.";
  }
  std::string example() const override {
    return "echo 'a red circle moves left' | vfm-generate --model run -o videos";
  }

  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + vfm::ops::gpu_versions();
  }

  void add_options(CLI::App& app) override {
    input_.add(
        app, "PROMPT",
        "texts to make clips of; \"-\" (the default): lines of text or JSON on standard input");
    app.add_option("-m,--model", job_.model,
                   "run folder of vfm-train, one of its checkpoints, or a folder of diffusers")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    app.add_option("--tokenizer", job_.tokenizer,
                   "folder of the tokenizer (default: where it was when latents were made)")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    app.add_option("--weights", weights_, "ema: averaged weights; model: those of the last step")
        ->type_name("NAME")
        ->check(CLI::IsMember({"ema", "model"}))
        ->capture_default_str();
    app.add_option(
           "--lora", loras_,
           "adapters for the model: a file, a folder, or a run that trained some; again: more")
        ->type_name("PATH[:SCALE]")
        ->check(vfm::cli::not_empty)
        ->allow_extra_args(false);
    mode_ = app.add_option("--lora-mode", lora_mode_,
                           "merged into the weights, or separate: beside them, at every product")
                ->type_name("MODE")
                ->check(CLI::IsMember({"merged", "separate"}))
                ->capture_default_str();
    app.add_option("--base", job_.lora.base,
                   "of a run that trained adapters: the model under them, if it has moved")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    app.add_option("--text-encoder", job_.text_encoder,
                   "folder of the model's text encoder, if it has moved")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    output_.add(app, false, "folder for the clips, or - for Y4M on standard output");
    add_clip_options(app);
    add_sampling_options(app);
    add_computing_options(app);
    seed_.add(app);
    add_running_options(app);
    // What the latents are is decided already.
    for (const char* option :
         {"--weights",           "--text-encoder",  "--size",      "--frames",   "--fps",
          "--sampler",           "--steps",         "--guidance",  "--negative", "--sigma-max",
          "--sigma-min",         "--temperature",   "--top-p",     "--noise",    "--condition",
          "--condition-frames",  "--augment-sigma", "--compute",   "--fp8",      "--seed",
          "--save-every",        "--lora",          "--lora-mode", "--base",     "--embedding",
          "--negative-embedding"})
      app.get_option("--decode-only")->excludes(app.get_option(option));
  }

  void check() override {
    if (!sampler_.empty()) job_.defaults.choice.sampler = vfm::generate::parse_sampler(sampler_);
    job_.fp8 = vfm::models::parse_fp8(fp8_);
    if (dtype_ != "auto") job_.compute = dtype_ == "bf16" ? vfm::DType::bf16 : vfm::DType::f32;
    parse_size();
    job_.lora.separate = lora_mode_ == "separate";
    job_.lora.mode_chosen = mode_->count() > 0;
    for (const std::string& lora : loras_)
      job_.lora.sets.push_back(parse_lora(lora));
    if (output_.directory == "-" && vfm::cli::stdout_is_terminal())
      vfm::fail_usage("Y4M is not for a terminal: pipe it, as in '-o - | ffplay -'");
    if (output_.directory == "-" && !report_.path.empty())
      vfm::fail_usage("--report needs a folder as --output");
    if (job_.latents_only && output_.directory == "-")
      vfm::fail_usage("--latents-only needs a folder as --output");
    if (job_.latents_only && !report_.path.empty())
      vfm::fail_usage("--latents-only makes no --report: there are no clips to show");
    if (!job_.dataset.empty() && report_.path.empty()) vfm::fail_usage("--dataset needs --report");
    if (job_.model.empty() && !decode_only_)
      vfm::fail_usage("--model is required: a folder of vfm-train or diffusers");
    if (decode_only_ && job_.latents_only)
      vfm::fail_usage("--latents-only and --decode-only are two stages: give one");
    if (decode_only_ && !report_.path.empty()) vfm::fail_usage("--decode-only makes no --report");
    if (dry_run_ && decode_only_) vfm::fail_usage("--dry-run tells of sampling, not of decoding");
    const bool lines = input_.inputs.empty() || std::ranges::count(input_.inputs, "-") > 0;
    const bool frames = job_.defaults.condition_frames.has_value();
    if (!lines && job_.defaults.condition.empty() && (frames || job_.defaults.choice.augment_sigma))
      vfm::fail_usage("{} needs a --condition", frames ? "--condition-frames" : "--augment-sigma");
    if (dry_run_) return;
    if (output_.directory.empty()) vfm::fail_usage("--output is required");
    job_.prompts = input_.resolved();
    // An embedding is an order by itself.
    if (input_.inputs.empty() && !job_.defaults.embedding.empty()) job_.prompts = {""};
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !dry_run_ && output_.directory != "-";
  }

  long run(vfm::cli::Context& context) override {
    input_limits_.apply();
    job_.defaults.request.negative = vfm::generate::negative_text(negative_);
    job_.device = vfm::choose_device(device_.device);
    vfm::ops::set_gpu_options(job_.device, compute_.deterministic, compute_.attention,
                              context.cache);
    if (decode_only_) {
      vfm::Slots slots(jobs_.resolved(), context.makeflags);
      return vfm::generate::decode_latents(
          {job_.prompts, job_.model, job_.tokenizer, output_.directory, output_.force, job_.encoder,
           quality_->count() > 0 ? std::optional(job_.quality) : std::nullopt, job_.device},
          slots, context.progress, context.manifest);
    }
    job_.ema = weights_ == "ema";
    job_.output = output_.directory;
    job_.force = output_.force;
    job_.report = report_.path;
    job_.cache = context.cache;
    job_.defaults.request.seed = seed_.seed;
    if (dry_run_) {
      const vfm::Json cost = vfm::generate::generation_cost(job_);
      vfm::cli::print(vfm::dump_json(cost) + "\n");
      vfm::cli::say(vfm::generate::generation_words(cost));
      return 0;
    }
    vfm::Slots slots(jobs_.resolved(), context.makeflags);
    return vfm::generate::generate_clips(job_, slots, context.progress, context.manifest);
  }

 private:
  void add_clip_options(CLI::App& app) {
    vfm::generate::ClipRequest& request = job_.defaults.request;
    app.add_option("--size", size_, "WIDTHxHEIGHT in pixels (default: as trained)")
        ->type_name("WxH")
        ->group("Clip");
    app.add_option("--frames", request.frames, "number of frames (default: as trained)")
        ->type_name("N")
        ->check(CLI::Range(1, 100000))
        ->group("Clip");
    app.add_option("--fps", request.fps, "frames a second (default: as trained)")
        ->type_name("RATE")
        ->check(CLI::Range(0.1, 1000.0))
        ->check(vfm::cli::not_nan)
        ->group("Clip");
    app.add_option("--encoder", job_.encoder, "encoder of the mp4, by FFmpeg's name")
        ->type_name("NAME")
        ->group("Clip");
    quality_ = app.add_option("--quality", job_.quality, "0 (best) to 51 (worst)")
                   ->type_name("Q")
                   ->check(CLI::Range(0, 51))
                   ->capture_default_str()
                   ->group("Clip");
  }

  void add_sampling_options(CLI::App& app) {
    vfm::generate::SampleChoice& choice = job_.defaults.choice;
    // FILE of the group "Sampling" or "Video to world"; and a number of "Sampling".
    const auto file = [&](const char* name, auto& path, const char* help, const char* group) {
      app.add_option(name, path, help)->type_name("FILE")->check(vfm::cli::not_empty)->group(group);
    };
    const auto number = [&](const char* name, auto& value, const char* type, const char* help) {
      return app.add_option(name, value, help)->type_name(type)->group("Sampling");
    };
    app.add_option("--sampler", sampler_, "euler, edm-euler, heun or res (default: the model's)")
        ->type_name("NAME")
        ->check(CLI::IsMember({"euler", "edm-euler", "heun", "res"}))
        ->group("Sampling");
    number("--steps", choice.steps, "N", "steps from noise to clip (default: the model's)")
        ->check(CLI::Range(1, 10000));
    number("--guidance", choice.guidance, "G",
           "g in c + g (c - u); 0 is none (default: the model's)");
    app.add_option("--negative", negative_, "text to keep away from; @FILE: it stands in a file")
        ->type_name("TEXT|@FILE")
        ->group("Sampling");
    file("--embedding", job_.defaults.embedding,
         "what the model sees instead of the prompts' text: .npy or .safetensors", "Sampling");
    file("--negative-embedding", job_.defaults.negative_embedding,
         "the same of the negative prompt", "Sampling");
    number("--sigma-max", choice.sigma_max, "S", "noise level to begin at (default: the model's)");
    number("--sigma-min", choice.sigma_min, "S", "last noise level above 0 (default: the model's)");
    number("--temperature", choice.temperature, "T",
           "of autoregressive models: divides the logits (default: 1)");
    number("--top-p", choice.top_p, "P",
           "of autoregressive models: codes are drawn from the likeliest (default: 0.9)");
    file("--noise", job_.defaults.noise, "first noise: .npy or .safetensors", "Sampling");
    file("--condition", job_.defaults.condition, "image or video that the clip begins with",
         "Video to world");
    app.add_option("--condition-frames", job_.defaults.condition_frames,
                   "how many of its last frames: 1, 9, 17, ... (default: 1 or 9)")
        ->type_name("N")
        ->check(CLI::Range(1, 100000))
        ->group("Video to world");
    app.add_option("--augment-sigma", choice.augment_sigma,
                   "noise on these frames (default: 0.001)")
        ->type_name("S")
        ->group("Video to world");
  }

  void add_computing_options(CLI::App& app) {
    device_.add(app);
    input_limits_.add(app);
    compute_.add(app);
    app.add_option("--compute", dtype_, "auto: on the CPU f32, on a GPU as the model was trained")
        ->type_name("DTYPE")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->capture_default_str();
    CLI::Option* fp8 = app.add_option("--fp8", fp8_, "off, linear, or all: compute in FP8")
                           ->type_name("PARTS")
                           ->check(CLI::IsMember({"off", "linear", "all"}))
                           ->capture_default_str();
    app.add_option("--fp8-tolerance", job_.fp8_tolerance,
                   "the most that FP8 may change the model's output, in parts of its size")
        ->type_name("PART")
        ->check(CLI::Range(0.0, 1000.0))
        ->check(vfm::cli::not_nan)
        ->needs(fp8)
        ->capture_default_str();
  }

  void add_running_options(CLI::App& app) {
    app.add_flag("--dry-run", dry_run_, "print parameters, FLOPs and memory; make nothing")
        ->group("Running");
    app.add_flag("--latents-only", job_.latents_only, "write latents, for --decode-only")
        ->group("Running");
    app.add_flag("--decode-only", decode_only_, "read latents instead of prompts, write clips")
        ->group("Running");
    app.add_option("--save-every", job_.save_every,
                   "seconds after which a clip's unfinished sampling is kept")
        ->type_name("S")
        ->check(CLI::Range(0.0, 1e9))
        ->check(vfm::cli::not_nan)
        ->capture_default_str()
        ->group("Running");
    jobs_.add(app);
    report_.add(app, "write a page with the clips, the training curve and the dataset");
    app.add_option("--dataset", job_.dataset, "with --report: show samples of these shards too")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
  }

  void parse_size() {
    if (size_.empty()) return;
    vfm::generate::ClipRequest& request = job_.defaults.request;
    int used = 0;
    if (std::sscanf(size_.c_str(), "%9dx%9d%n", &request.width, &request.height, &used) != 2 ||
        used != static_cast<int>(size_.size()))
      vfm::fail_usage("--size '{}' is not WIDTHxHEIGHT, as in 64x64", size_);
    const auto [least, most] = std::minmax(request.width, request.height);
    if (least < 1 || most > vfm::generate::kLargestSide)
      vfm::fail_usage("--size '{}': width and height must be 1 to {} pixels", size_,
                      vfm::generate::kLargestSide);
  }

  /// What stands after the last colon is a factor if it is a number, and else part of the path.
  static vfm::models::AdapterChoice::Set parse_lora(const std::string& lora) {
    const std::size_t colon = lora.rfind(':');
    if (colon == std::string::npos || colon + 1 == lora.size()) return {lora};
    const char* end = lora.data() + lora.size();
    double scale = 1;
    const auto [stop, error] = std::from_chars(lora.data() + colon + 1, end, scale);
    if (error != std::errc{} || stop != end) return {lora};
    if (!std::isfinite(scale)) vfm::fail_usage("--lora '{}': no finite scale", lora);
    if (colon == 0) vfm::fail_usage("--lora '{}' names no file", lora);
    return {lora.substr(0, colon), scale};
  }

  vfm::generate::GenerateJob job_;
  bool decode_only_ = false, dry_run_ = false;
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::ReportOptions report_;
  vfm::cli::DeviceOptions device_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::ComputeOptions compute_;
  CLI::Option *quality_ = nullptr, *mode_ = nullptr;
  std::string size_, negative_, weights_ = "ema", sampler_, fp8_ = "off", dtype_ = "auto";
  std::string lora_mode_ = "merged";
  std::vector<std::string> loras_;
};

}  // namespace

int main(int argc, char** argv) {
  GenerateTool tool;
  return vfm::cli::run(argc, argv, tool);
}
