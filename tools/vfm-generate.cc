// vfm-generate: prompts in, clips out.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/slots.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "device_workers.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "generate/decode_latents.h"
#include "generate/generate.h"
#include "generate/generate_cost.h"
#include "generate_devices.h"
#include "generate_parse.h"
#include "media/version.h"
#include "ops/gpu_options.h"
#include "option_group.h"
#include "tensor/device.h"

namespace {

class GenerateTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-generate"; }
  std::string description() const override {
    return "Makes video clips from text with a model that vfm-train trained.";
  }
  std::string examples() const override {
    return "echo 'a red circle moves left' | vfm-generate --model run -o videos";
  }

  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + (vfm::dist::has_mpi() ? "MPI: yes\n" : "MPI: no\n") +
           vfm::ops::gpu_versions();
  }

  void add_options(vfm::cli::Options& options) override {
    CLI::App& app = options.app();
    input_.add(
        options, "PROMPT",
        "texts to make clips of; \"-\" (the default): lines of text or JSON on standard input");
    app.add_option("-m,--model", job_.model,
                   "run folder of vfm-train, one of its checkpoints, or a folder of diffusers")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    output_.add(options, false, "folder for the clips, or - for Y4M on standard output");
    device_.add(options);
    devices_.add(options);
    input_limits_.add(options);
    compute_.add(options);
    jobs_.add(options);
    report_.add(options, "write a page with the clips, the training curve and the dataset");
    app.add_option("--dataset", job_.dataset, "with --report: show samples of these shards too")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    add_prompt_options({options, "Prompts"});
    add_network_options({options, "Network"});
    add_quantize_options({options, "Network"});
    add_size_options({options, "Size"});
    add_sampling_options({options, "Sampling"});
    add_condition_options({options, "Video to world"});
    for (const CLI::Option* option : app.get_options())
      if (kOfLatents.contains(option->get_group()) && option->get_name() != "--compute")
        of_latents_.push_back(option);
    add_decoding_options({options, "Decoding"});
    add_running_options({options, "Running"});
  }

  void check() override {
    read_options();
    devices_.cards();
  }

  /// What needs nothing but the command line; also in a worker.
  void read_options() {
    if (decode_only_) refuse_options_of_latents(of_latents_);
    if (!sampler_.empty()) job_.defaults.choice.sampler = vfm::generate::parse_sampler(sampler_);
    if (sigmas_->count() > 0) job_.defaults.choice.sigmas = vfm::generate::parse_sigmas(levels_);
    job_.fp8 = vfm::models::parse_fp8(fp8_);
    if (quantize_ != "off") job_.quantize = vfm::ops::parse_row_format(quantize_);
    if (job_.quantize && job_.fp8.any())
      vfm::fail_usage("--quantize and --fp8: products in FP8 have weights in 8 bits, give one");
    if (dtype_ != "auto") job_.compute = dtype_ == "bf16" ? vfm::DType::bf16 : vfm::DType::f32;
    parse_size(size_, job_.defaults);
    job_.lora.separate = lora_mode_ == "separate";
    job_.lora.mode_chosen = mode_->count() > 0;
    for (const std::string& lora : loras_)
      job_.lora.sets.push_back(parse_lora(lora));
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
    job_.gpu = vfm::models::chosen_gpu(gpu_, dry_run_, device_.device);
    if (dry_run_ && decode_only_) vfm::fail_usage("--dry-run is for sampling, not for decoding");
    const bool lines = input_.inputs.empty() || std::ranges::count(input_.inputs, "-") > 0;
    const bool frames = job_.defaults.files.condition_frames.has_value();
    if (!lines && job_.defaults.files.condition.path.empty() &&
        (frames || job_.defaults.choice.augment_sigma))
      vfm::fail_usage("{} needs a --condition", frames ? "--condition-frames" : "--augment-sigma");
    job_.parallel = layout_of(parallel_, shard_, dry_run_, decode_only_);
    if (!devices_.devices.empty())
      refuse_with_devices(dry_run_, decode_only_, output_.directory, job_.parallel);
    if (dry_run_) return;
    if (output_.directory.empty()) vfm::fail_usage("--output is required");
    job_.prompts = input_.resolved();
    // An embedding asks for a clip by itself.
    if (input_.inputs.empty() && !job_.defaults.files.embedding.path.empty()) job_.prompts = {""};
  }

  bool writes_manifest(const vfm::cli::Launch& launch) const override {
    return launch.rank == 0 && !dry_run_ && output_.directory != "-";
  }

  int serve_card(int channel) override {
    return serve_clips(channel, [this](const DealtJob& dealt) {
      CLI::App app;
      vfm::cli::Options options(app);
      add_options(options);
      read_again(app, dealt.arguments);
      read_options();
      input_limits_.apply();
      job_.device = dealt.device;
      settle(dealt.cache);
      job_.model = dealt.model;
      return job_;
    });
  }

  bool ranks_are_one() const override { return true; }

  long run(vfm::cli::Context& context) override {
    const vfm::cli::Launch& launch = context.launch;
    if (dry_run_) return launch.rank > 0 ? 0 : tell_cost(context);
    if (!devices_.devices.empty() && launch.ranks == 1) {
      check_files(launch);
      const auto workers = workers_of(devices_, jobs_, name());
      job_.device = workers->device();
      settle(context.cache);
      return deal_to_cards(job_, *workers, jobs_, context);
    }
    return vfm::dist::with_world(launch.ranks, [&](vfm::dist::World& world) {
      std::unique_ptr<vfm::Slots> slots;
      on_all_ranks(world, [&] { slots = prepare(context); });  // what all refuse is said once
      if (decode_only_)
        return vfm::generate::decode_latents(
            {job_.prompts, job_.model, job_.tokenizer, output_.directory, output_.force,
             job_.encoder, quality_->count() > 0 ? std::optional(job_.quality) : std::nullopt,
             job_.device, job_.compute, job_.tokenizer_memory},
            world, *slots, context.progress, context.manifest);
      world.use_device(job_.device, compute_.deterministic);
      return vfm::generate::generate_clips(job_, world, *slots, context.progress, context.manifest);
    });
  }

 private:
  long tell_cost(const vfm::cli::Context& context) {
    input_limits_.apply();
    choose_device(context.launch);
    settle(context.cache);
    const vfm::Json cost = vfm::generate::generation_cost(job_);
    vfm::cli::print(vfm::dump_json(cost) + "\n");
    vfm::cli::say(vfm::generate::generation_words(cost));
    return 0;
  }

  /// Of one rank, before any work.
  std::unique_ptr<vfm::Slots> prepare(const vfm::cli::Context& context) {
    const vfm::cli::Launch& launch = context.launch;
    check_files(launch);
    if (!devices_.devices.empty()) refuse_ranks(launch);
    choose_device(launch);
    settle(context.cache);
    if (launch.ranks == 1 && !job_.latents_only) engines_.encode(job_.encoder);
    const int threads =
        launch.ranks > 1 ? vfm::dist::threads_per_rank(jobs_.jobs, launch.ranks, launch.local_ranks)
                         : 0;
    return std::unique_ptr<vfm::Slots>(new vfm::Slots(context.slots(jobs_, threads)));
  }

  /// That FFmpeg can write what is asked for, and where to.
  void check_files(const vfm::cli::Launch& launch) {
    input_limits_.apply();  // FFmpeg takes them when it is first used
    if (!job_.latents_only && output_.directory != "-") check_encoder(job_.encoder);
    // What mpirun gives its ranks is a terminal, too, and what it makes of that another matter.
    if (output_.directory == "-" && launch.ranks == 1 && vfm::cli::stdout_is_terminal())
      vfm::fail_usage("Y4M is not for a terminal: pipe it, as in '-o - | ffplay -'");
  }

  void choose_device(const vfm::cli::Launch& launch) {
    job_.device = job_.gpu != nullptr
                      ? job_.gpu->device()
                      : vfm::dist::rank_device(device_.device, launch.local_rank,
                                               launch.local_ranks, launch.shown_gpu);
  }

  /// What the options say of a job on job_.device.
  void settle(const std::string& cache) {
    job_.defaults.negative = vfm::generate::negative_text(negative_);
    vfm::ops::set_gpu_options(job_.device, compute_.deterministic, compute_.attention, cache);
    job_.ema = weights_ == "ema";
    job_.output = output_.directory;
    job_.force = output_.force;
    job_.report = report_.path;
    job_.cache = cache;
    job_.defaults.seed = seed_.seed;
  }

  /// The owners whose options decide a latent. Of one that is made --decode-only takes none but
  /// --compute, which is of its tokenizer too.
  inline static const std::set<std::string> kOfLatents = {"Prompts", "Network", "Size", "Sampling",
                                                          "Video to world"};

  void add_prompt_options(const OptionGroup& group) {
    group.add_path("--text-encoder", job_.text_encoder, "DIR",
                   "folder of the model's text encoder, if it has moved");
    group.add("--negative", negative_, "TEXT|@FILE",
              "text to keep away from; @FILE: read it from a file");
    group.add_path("--embedding", job_.defaults.files.embedding.path, "FILE",
                   "what the model sees instead of the prompts' text: .npy or .safetensors");
    group.add_path("--negative-embedding", job_.defaults.files.negative_embedding.path, "FILE",
                   "the same of the negative prompt");
  }

  void add_network_options(const OptionGroup& group) {
    group
        .add_choice("--weights", weights_, "NAME", {"ema", "model"},
                    "ema: averaged weights; model: those of the last step")
        ->capture_default_str();
    group
        .add("--lora", loras_, "PATH[:SCALE]",
             "adapters: a file, a folder, or a run that trained some; may be repeated")
        ->check(vfm::cli::not_empty)
        ->allow_extra_args(false);
    mode_ = group
                .add_choice("--lora-mode", lora_mode_, "MODE", {"merged", "separate"},
                            "merged into the weights, or separate: beside them, at every product")
                ->capture_default_str();
    group.add_path("--base", job_.lora.base, "DIR",
                   "of a run that trained adapters: the model under them, if it has moved");
    group
        .add_choice(
            "--compute", dtype_, "DTYPE", {"auto", "f32", "bf16"},
            "auto: on the CPU f32, on a GPU as the model was trained, its tokenizer in bf16")
        ->capture_default_str();
    CLI::Option* const fp8 =
        group.add("--fp8", fp8_, "PARTS", "off, linear, or all: compute in FP8")
            ->capture_default_str();
    group
        .add("--fp8-tolerance", job_.fp8_tolerance, "PART",
             "the most that FP8 may change the model's output, in parts of its size")
        ->check(CLI::Range(0.0, 1000.0))
        ->check(vfm::cli::not_nan)
        ->needs(fp8)
        ->capture_default_str();
  }

  void add_quantize_options(const OptionGroup& group) {
    CLI::Option* const quantize =
        group
            .add_choice("--quantize", quantize_, "FORM", {"off", "int8", "e4m3"},
                        "off, int8, or e4m3: keep the matrices of the blocks in 8 bits")
            ->capture_default_str();
    group
        .add("--quantize-tolerance", job_.quantize_tolerance, "PART",
             "the most that this may change the model's output, in parts of its size")
        ->check(CLI::Range(0.0, 1000.0))
        ->check(vfm::cli::not_nan)
        ->needs(quantize)
        ->capture_default_str();
  }

  void add_size_options(const OptionGroup& group) {
    vfm::generate::Prompt& prompt = job_.defaults;
    group.add("--size", size_, "WxH", "WIDTHxHEIGHT in pixels (default: as trained)");
    group.add("--frames", prompt.frames, "N", "number of frames (default: as trained)")
        ->check(CLI::Range(1, 100000));
    group.add("--fps", prompt.fps, "RATE", "frames a second (default: as trained)")
        ->check(CLI::Range(0.1, 1000.0))
        ->check(vfm::cli::not_nan);
  }

  void add_sampling_options(const OptionGroup& group) {
    vfm::generate::SampleChoice& choice = job_.defaults.choice;
    group.options.group(group.owner);
    seed_.add(group.options);
    group.add_choice("--sampler", sampler_, "NAME", {"euler", "edm-euler", "heun", "res", "lcm"},
                     "euler, edm-euler, heun, res or lcm (default: the model's)");
    group.add("--steps", choice.steps, "N", "steps from noise to clip (default: the model's)")
        ->check(CLI::Range(1, 10000));
    group.add("--guidance", choice.guidance, "G",
              "g in c + g (c - u); 0 is none (default: the model's)");
    group.add("--sigma-max", choice.sigma_max, "S",
              "noise level to begin at (default: the model's)");
    group.add("--sigma-min", choice.sigma_min, "S",
              "last noise level above 0 (default: the model's)");
    sigmas_ = group
                  .add("--sigmas", levels_, "S,S,...",
                       "the noise levels themselves, falling, in place of these three")
                  ->excludes("--steps")
                  ->excludes("--sigma-max")
                  ->excludes("--sigma-min");
    group.add("--temperature", choice.temperature, "T",
              "of autoregressive models: divides the logits (default: 1)");
    group.add("--top-p", choice.top_p, "P",
              "of autoregressive models: codes are drawn from the likeliest (default: 0.9)");
    group.add_path("--noise", job_.defaults.files.noise.path, "FILE",
                   "first noise: .npy or .safetensors");
    group
        .add("--save-every", job_.save_every, "S",
             "seconds after which a clip's unfinished sampling is kept")
        ->check(CLI::Range(0.0, 1e9))
        ->check(vfm::cli::not_nan)
        ->capture_default_str();
  }

  void add_condition_options(const OptionGroup& group) {
    group.add_path("--condition", job_.defaults.files.condition.path, "FILE",
                   "image or video that the clip begins with");
    group
        .add("--condition-frames", job_.defaults.files.condition_frames, "N",
             "how many of its last frames: 1, 9, 17, ... (default: 1 or 9)")
        ->check(CLI::Range(1, 100000));
    group.add("--augment-sigma", job_.defaults.choice.augment_sigma, "S",
              "noise on these frames (default: 0.001)");
  }

  void add_decoding_options(const OptionGroup& group) {
    group.add_path("--tokenizer", job_.tokenizer, "DIR",
                   "folder of the tokenizer (default: where it was when latents were made)");
    group.options.group(group.owner);
    vfm::cli::add_tokenizer_memory(group.options, job_.tokenizer_memory);
    group.add("--encoder", job_.encoder, "NAME", "encoder of the mp4, by FFmpeg's name");
    quality_ = group.add("--quality", job_.quality, "Q", "0 (best) to 51 (worst)")
                   ->check(CLI::Range(0, 51))
                   ->capture_default_str();
  }

  void add_running_options(const OptionGroup& group) {
    group.add("--parallel", parallel_, "AXIS=N,...",
              "of mpirun's ranks so many share each clip: cfg=2, cp=N, tp=N, "
              "cp_kind=NAME, hybrid; or auto");
    group.add_flag("--shard", shard_,
                   "with --parallel: each of these keeps a part of the network's weights");
    group.add_flag("--dry-run", dry_run_, "print parameters, FLOPs and memory; make nothing");
    group.add("--gpu", gpu_, "h100|h200|b200",
              "with --dry-run: predict the time of a clip on one, which need not be here");
    group.add_flag("--latents-only", job_.latents_only, "write latents, for --decode-only");
    group.add_flag("--decode-only", decode_only_,
                   "read latents instead of prompts, write clips; takes no option that decides "
                   "latents");
  }

  vfm::generate::GenerateJob job_;
  bool decode_only_ = false, dry_run_ = false, shard_ = false;
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::ReportOptions report_;
  vfm::cli::DeviceOptions device_;
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, jobs_, "vfm-generate"};
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::ComputeOptions compute_;
  std::vector<const CLI::Option*> of_latents_;
  CLI::Option *quality_ = nullptr, *mode_ = nullptr, *sigmas_ = nullptr;
  std::optional<std::string> gpu_;
  std::string size_, negative_, weights_ = "ema", sampler_, levels_, fp8_ = "off", dtype_ = "auto";
  std::string lora_mode_ = "merged", parallel_, quantize_ = "off";
  std::vector<std::string> loras_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<GenerateTool>}});
}
