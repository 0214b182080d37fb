// vfm-generate: prompts in, clips out.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/part_options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "device_workers.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "generate/clip_maker.h"
#include "generate/cost/generate_cost.h"
#include "generate/generate.h"
#include "generate/ranks/clip_wire.h"
#include "generate/ranks/clip_workers.h"
#include "generate_options.h"
#include "io/file.h"
#include "io/line_reader.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder.h"
#include "media/version.h"
#include "models/folder/checkpoint_folder.h"
#include "ops/gpu_options.h"
#include "shard_parts.h"
#include "share/slots.h"
#include "verbs.h"
#include "workers/service.h"

namespace {

// --device all|0,2: distributes prompts to workers, which are processes of this program, one for
// each GPU. A worker reads the same command line again.

/// Throws Error{usage} for options that exclude workers: -o - and --parallel.
void refuse_with_workers(bool stream, const vfm::dist::Layout& parallel) {
  if (stream) vfm::fail_usage("workers of --device write clips into a folder: leave out -o -");
  if (!parallel.alone() || parallel.choose != 0)
    vfm::fail_usage(
        "workers of --device make clips of their own; to share a clip among GPUs start "
        "'mpirun -np N vfm-generate --parallel ...' without --device");
}

void refuse_ranks(const vfm::cli::Launch& launch) {
  if (launch.ranks > 1)
    vfm::fail_usage(
        "--device all or a list starts a worker for each GPU by itself: start vfm-generate "
        "without mpirun, or leave out --device");
}

/// What opens a worker.
struct DealtJob {
  std::vector<std::string> arguments;  // of the command line
  std::string cache, model;
  int threads = 0;  // of OpenMP; 0: the number of processors
  vfm::Device device = vfm::Device::cpu;
};

/// Parses the tool's options again. Ignores options that are not the tool's.
void read_again(CLI::App& app, std::vector<std::string> arguments) {
  app.allow_extras();
  app.add_flag("-v")->group("");  // needed for -vo DIR
  app.add_flag("-q")->group("");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes arguments from the back
  app.parse(std::move(arguments));
}

/// Implements Tool::serve_gpu().
int serve_clips(int channel,
                const std::function<vfm::generate::GenerateJob(const DealtJob&)>& job_of) {
  const auto open = [&](const vfm::workers::Parcel& parcel, vfm::Device device) {
    DealtJob dealt;
    vfm::generate::unpack(vfm::workers::text_of(parcel.tensors.at(0)), dealt.arguments, dealt.cache,
                          dealt.model, dealt.threads);
    dealt.device = device;
    return vfm::generate::open_clips(job_of(dealt), dealt.threads);
  };
  return vfm::workers::serve_gpu(channel,
                                 vfm::workers::stage_services({{vfm::generate::kClips, open}}));
}

/// Makes the job's clips in `workers`, at most -j clips at a time.
long deal_to_gpus(vfm::generate::GenerateJob& job, vfm::workers::StageModels& workers,
                  const vfm::cli::JobOptions& jobs, vfm::cli::Context& context) {
  const std::string newest = vfm::models::checkpoint_at(job.model);
  if (!newest.empty()) job.model = newest;  // so that all workers use the same checkpoint
  const auto gpus = static_cast<int>(workers.together());
  const int together = jobs.jobs > 0 ? std::min(jobs.jobs, gpus) : gpus;
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const bool cpu = workers.device() == vfm::Device::cpu;
  const int threads = cpu ? std::max(1, processors / gpus) : 0;
  const std::string dealt =
      vfm::generate::pack(context.arguments, context.cache, job.model, threads);
  vfm::workers::Parcel open{"", vfm::HeldJson::object(), {vfm::workers::bytes_tensor(dealt)}};
  const vfm::Json cost = vfm::generate::generation_cost(job);
  const std::size_t number = workers.add(vfm::generate::kClips, std::move(open),
                                         cost.at("memory_bytes").at("peak").get<std::int64_t>());
  const bool encodes = !job.latents_only && workers.device() == vfm::Device::cuda;
  if (encodes &&
      vfm::media::encodes_on_gpu(job.encoder.empty() ? vfm::media::default_encoder() : job.encoder))
    workers.add_sessions(vfm::share::GpuKind::encode);
  workers.open();
  vfm::share::Slots slots = context.slots(jobs, together);
  slots.set_flow(workers.flow());
  vfm::generate::ClipWorkers makers(job, workers, number, context.progress, context.manifest);
  return vfm::generate::generate_clips(job, makers, slots, context.progress);
}

class GenerateTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-generate"; }
  std::string description() const override {
    return "Makes video clips from prompts with a trained model.";
  }
  std::string examples() const override {
    return "vfm-generate --model run -o videos 'a red circle moves left'\n"
           "vfm-generate --model cosmos --negative @no.txt -o videos <prompts\n"
           "mpirun -np 8 vfm-generate --model run --parallel auto -o videos <prompts";
  }

  std::string version_details() const override {
    return vfm::media::ffmpeg_version() + (vfm::dist::has_mpi() ? "MPI: yes\n" : "MPI: no\n") +
           vfm::ops::gpu_versions();
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Model");
    generate_.add_model(options);
    options.flag("--no-ema", no_ema_, "use the weights of the last step, not their average")
        .manual("Use the weights of the last step of training, not their average (EMA).");
    options.group("Clips");
    options
        .add("PROMPT", prompts_, "TEXT|@FILE", "a prompt, @FILE with one, or - for lines of input")
        .everyday();
    generate_.add_prompt(options);
    generate_.add_clip(options);
    options.add("--fps", job_.defaults.fps, "RATE", "frames a second")
        .in(0.1, 1000)
        .shown("as trained")
        .manual("Frames a second of the clip. The model sees the rate, too.");
    options.group("Sampling");
    seed_.add(options);
    options.row("--seed").everyday();
    generate_.add_sampling(options);
    options.add("--save-every", job_.save_every, "S", "store unfinished sampling every S seconds")
        .in(0, 1e9)
        .manual(
            "Store the state of a clip's sampling every _S_ seconds, so that a later run can "
            "continue from it. With 0, the state is stored after each step.");
    add_output_options(options);
    add_computing_options(options);
  }

  bool arguments_are_files() const override { return false; }
  bool ranks_are_one() const override { return true; }

  void check() override {
    read_options();
    device_.gpus();
  }

  bool winds_up() const override { return part_.winds_up(); }
  bool writes_manifest(const vfm::cli::Launch& launch) const override {
    return launch.rank == 0 && !files_.stream();
  }

  int serve_gpu(int channel) override {
    return serve_clips(channel, [this](const DealtJob& dealt) {
      CLI::App app;
      vfm::cli::Options options(app);
      add_options(options);
      read_again(app, dealt.arguments);
      read_options();
      job_.device = dealt.device;
      settle(dealt.cache, vfm::no_progress());
      job_.model = dealt.model;
      return job_;
    });
  }

  long run(vfm::cli::Context& context) override {
    const vfm::cli::Launch& launch = context.launch;
    if (launch.rank == 0) warn_of_files(), warn_of_lines();
    if (device_.workers() && launch.ranks == 1) {
      check_files(launch);
      const auto workers = workers_of(device_, jobs_, name());
      job_.device = workers->device();
      settle(context.cache, context.progress);
      return deal_to_gpus(job_, *workers, jobs_, context);
    }
    return vfm::dist::with_world(launch.ranks, [&](vfm::dist::World& world) {
      std::unique_ptr<vfm::share::Slots> slots;
      on_all_ranks(world, [&] { slots = prepare(context); });  // reports an error of all ranks once
      world.use_device(job_.device, compute_.deterministic);
      vfm::generate::ClipMaker maker(job_, world, context.progress, context.manifest);
      return vfm::generate::generate_clips(job_, maker, *slots, context.progress);
    });
  }

 private:
  void add_output_options(vfm::cli::Options& options) {
    options.group("Output");
    files_.add(options, "the best that FFmpeg has", "12");
    options.flag("--latents-only", job_.latents_only, "write latents, for vfm-generate decode")
        .everyday()
        .manual(
            "Write latents in place of clips: _NAME_.latents.safetensors and _NAME_.latents.json. "
            "*vfm-generate-decode*(1) decodes them into clips.");
    report_.add(options, "write a page with the clips and the training curve");
    vfm::cli::OptionRow& report = options.row("--report");
    report.shown("").manual("Write a page with the clips and the curve of the training run.");
    options.add("--dataset", job_.dataset, "DIR", "show samples of these shards on the page too")
        .check(vfm::cli::not_empty)
        .needs(report)
        .shown("")
        .manual("Show samples and histograms of these shards on the page of *--report* too.");
  }

  void add_computing_options(vfm::cli::Options& options) {
    options.group("Computing");
    device_.add_workers(options).everyday();
    jobs_.add(options);
    part_.add(options);
    generate_.add_precision(options);
    options
        .add("--tolerance", job_.tolerance, "PART",
             "maximum change of the output by --fp8 or --quantize")
        .in(0, 1000)
        .manual(
            "Maximum change of the model's output by *--fp8* or *--quantize*, relative to the "
            "output. See FEWER BITS.");
    tolerance_ = &options.row("--tolerance");
    compute_.add(options);
  }

  /// Reads the options, but no file. Workers call it, too.
  void read_options() {
    generate_.read(job_);
    job_.ema = !no_ema_;
    job_.encoder = files_.encoder;
    job_.quality = files_.quality.value_or(job_.quality);
    if (tolerance_->given() && !job_.fp8.any() && !job_.quantize)
      vfm::fail_usage("--tolerance is about --fp8 or --quantize: give one of them");
    if (files_.stream() && !report_.path.empty())
      vfm::fail_usage("--report shows clips of a folder: name one by -o");
    if (job_.latents_only && files_.stream())
      vfm::fail_usage("--latents-only writes files: name a folder by -o");
    if (job_.latents_only && !report_.path.empty())
      vfm::fail_usage("--report shows clips, and --latents-only makes none: leave out one");
    const bool lines = prompts_.empty() || std::ranges::count(prompts_, "-") > 0;
    if (!lines && generate_.lacks_condition())
      vfm::fail_usage("--condition-frames needs --condition");
    if (device_.workers()) refuse_with_workers(files_.stream(), job_.parallel);
    check_part(part_, files_.output.force, false, report_.path);
    if (!part_.choice.whole() && files_.stream())
      vfm::fail_usage("--part keeps its files in a folder: name one by -o");
    if (prompts_.empty() && vfm::cli::stdin_is_terminal())
      vfm::fail_usage(
          "no prompt is given: give one, or pipe lines of them; '-' reads the terminal");
    job_.prompts.clear();
    for (const std::string& prompt : prompts_)
      job_.prompts.push_back(prompt == "-" ? prompt : vfm::generate::given_text(prompt));
    if (prompts_.empty()) job_.prompts = {"-"};
  }

  /// Throws Error{usage} if parts need prompts that can be read only once.
  void check_rereads() const {
    if (part_.choice.whole() || std::ranges::count(job_.prompts, "-") == 0) return;
    try {
      vfm::io::LineReader::standard_input_again();
    } catch (const vfm::Error&) {
      vfm::fail_usage(
          "--part reads the prompts more than once: give <FILE, and not a pipe; under mpirun or "
          "srun, start: sh -c 'exec vfm-generate ... <FILE'");
    }
  }

  /// Warns if a prompt is the name of a file of latents or prompts.
  void warn_of_files() const {
    for (const std::string& prompt : prompts_) {
      const auto ends = [&](const char* end) { return prompt.ends_with(end); };
      if (!std::ranges::any_of(std::array{".safetensors", ".json", ".txt", ".jsonl"}, ends) ||
          !vfm::io::file_exists(prompt))
        continue;
      const bool latents = ends(".safetensors") || ends(".latents.json");
      return vfm::log_warning("'{}' is a prompt, not the file of that name: {}", prompt,
                              latents ? "vfm-generate decode makes clips of latents"
                                      : "@FILE is a prompt from a file, and <FILE one a line");
    }
  }

  /// Warns if the file of a prompt @FILE has several lines, and so may be a list of prompts.
  void warn_of_lines() const {
    for (std::size_t i = 0; i < prompts_.size(); ++i)
      if (const auto ends = std::ranges::count(job_.prompts[i], '\n');
          ends > 0 && prompts_[i].starts_with('@') && !prompts_[i].starts_with("@@"))
        vfm::log_warning("'{0}' is one prompt of {1} lines; for a clip of each line give '<{0}'",
                         prompts_[i].substr(1), ends + 1);
  }

  /// Prepares one rank, before any work.
  std::unique_ptr<vfm::share::Slots> prepare(const vfm::cli::Context& context) {
    const vfm::cli::Launch& launch = context.launch;
    check_files(launch);
    if (device_.workers()) refuse_ranks(launch);
    job_.device = generate_.tokenizer.device_of(launch);
    settle(context.cache, context.progress);
    if (launch.ranks == 1 && !job_.latents_only) engines_.encode(job_.encoder);
    const int threads =
        launch.ranks > 1 ? vfm::dist::threads_per_rank(jobs_.jobs, launch.ranks, launch.local_ranks)
                         : 0;
    return std::unique_ptr<vfm::share::Slots>(new vfm::share::Slots(context.slots(jobs_, threads)));
  }

  void check_files(const vfm::cli::Launch& launch) const {
    if (launch.rank == 0) check_rereads();
    if (!job_.latents_only) files_.check(launch);
  }

  /// Stores the options in the job. Needs job_.device.
  void settle(const std::string& cache, vfm::Progress& progress) {
    vfm::ops::set_gpu_options(job_.device, compute_.deterministic, compute_.attention, cache);
    job_.output = files_.output.directory;
    job_.parts =
        part_work("generate", part_, job_.output, {}, vfm::media::ffmpeg_version(), progress);
    job_.force = files_.output.force;
    job_.report = report_.path;
    job_.cache = cache;
    job_.defaults.seed = seed_.seed;
  }

  vfm::generate::GenerateJob job_;
  GenerateOptions generate_;
  ClipFileOptions files_;
  std::vector<std::string> prompts_;
  bool no_ema_ = false;
  const vfm::cli::OptionRow* tolerance_ = nullptr;
  vfm::cli::SeedOptions seed_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::PartOptions part_;
  vfm::cli::ReportOptions report_;
  vfm::cli::WorkerOptions& device_ = generate_.tokenizer.device;
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-generate"};
  vfm::cli::ComputeOptions compute_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<GenerateTool>},
                        {"decode", make_generate_decode},
                        {"cost", make_generate_cost},
                        {"status", make_generate_status}});
}
