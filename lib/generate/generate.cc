// SPDX-License-Identifier: Apache-2.0
#include "generate/generate.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/units.h"
#include "generate/clip_output.h"
#include "generate/clip_progress.h"
#include "generate/clip_record.h"
#include "generate/generation_report.h"
#include "generate/latent_files.h"
#include "generate/named_request.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "tensor/failure.h"

namespace vfm::generate {

namespace {

/// A model that cannot be used, and options that do not suit it, are known before any work.
/// `tokenizer_compute` becomes what move_parts() returns.
Generator load(const GenerateJob& job, std::string& tokenizer_compute) {
  return as_usage([&] {
    std::optional<DType> compute = job.compute;
    if (!compute && job.fp8.any()) compute = DType::bf16;
    if (!compute && job.device == Device::cpu) compute = DType::f32;
    models::LoadedModel model =
        models::load_model(job.model, job.ema, compute, job.device, job.lora);
    tokenizer_compute = move_parts(model.facts, job);
    Generator generator(std::move(model), job.cache, job.text_encoder, job.tokenizer_memory);
    job.defaults.choice.check_for(generator.autoregressive(), generator.sampling().sampler);
    job.defaults.choice.over(generator.sampling()).validate();
    if (job.tokenizer_memory > 0 && !job.latents_only)
      generator.check_decodes(request_of(job.defaults, generator.usual(), generator.facts().fps));
    if (job.fp8.any()) generator.set_fp8(job.fp8);  // refuses a model that cannot
    return generator;
  });
}

/// The next of the input: a request, or why there is none.
struct Asked {
  std::shared_ptr<const NamedRequest> request;
  std::string where, error;  ///< error: empty if there is one
};

/// What became of it.
struct Result {
  Asked asked;
  Json record;         ///< of the manifest
  bool made = true;    ///< else it was there
  Latent latent;       ///< for the stream
  double seconds = 0;  ///< that it took
};

class Run {
 public:
  Run(const GenerateJob& job, Progress& progress, io::ManifestWriter& manifest);
  long run(Slots& slots);

 private:
  std::optional<Asked> next();
  void measure_fp8(const NamedRequest& request);
  Json describe(const NamedRequest& request) const;
  Json record_of(const NamedRequest& request) const;
  Result make(Asked& asked) const;
  void make_file(Result& result) const;
  Latent make_latent(const NamedRequest& request) const;
  SamplerState kept_state(const NamedRequest& request, const std::string& address) const;
  void hand_over(Result& result);

  const GenerateJob& job_;
  Progress& progress_;
  std::string tokenizer_compute_;
  Generator generator_;
  ModelInUse in_use_;
  ClipOutput output_;
  PromptReader prompts_;
  RequestMaker requests_;
  std::optional<double> fp8_error_;  ///< measured on the first request
};

Run::Run(const GenerateJob& job, Progress& progress, io::ManifestWriter& manifest)
    : job_(job),
      progress_(progress),
      generator_(load(job, tokenizer_compute_)),
      in_use_{generator_, generator_.model().hash, job.fp8, job.device, tokenizer_compute_},
      output_(job.output, job.encoder, progress, manifest),
      prompts_(job.prompts, job.defaults),
      requests_(job, in_use_, output_) {}

/// One caller at a time, in order.
std::optional<Asked> Run::next() {
  std::optional<PromptLine> line = prompts_.next();
  if (!line) return std::nullopt;
  Asked asked{nullptr, std::move(line->where), std::move(line->error)};
  if (!asked.error.empty()) return asked;
  asked.error = failure_of([&] {
    asked.request = requests_.make(std::move(line->prompt));
    if (job_.fp8.any() && !fp8_error_) measure_fp8(*asked.request);
  });
  if (fp8_error_ && !(*fp8_error_ <= job_.fp8_tolerance))
    fail(
        "FP8 changes the model's output by {:.4f} of its size, more than --fp8-tolerance {} "
        "allows: "
        "generate without --fp8, or allow more",
        *fp8_error_, job_.fp8_tolerance);
  return asked;
}

/// Before any clip is made, so no other thread uses the generator yet.
void Run::measure_fp8(const NamedRequest& request) {
  fp8_error_ = generator_.fp8_error(job_.fp8, request.clip, request.sampling);
  generator_.set_fp8(job_.fp8);
}

/// All that decides the bytes of the file: its hash is the address. Latents are named as the clip
/// that will be made of them.
Json Run::describe(const NamedRequest& request) const {
  return job_.latents_only ? describe_latent(in_use_, request)
                           : describe_clip(in_use_, request, output_);
}

SamplerState Run::kept_state(const NamedRequest& request, const std::string& address) const {
  if (!has_state(job_.output, request.name) || job_.force) return {};
  try {
    SamplerState state = read_state(job_.output, request.name, address);
    log_info("'{}' resumes after step {}", request.name, state.step);
    return state;
  } catch (const Error& error) {
    log_info("'{}' begins anew: {}", request.name, error.what());
    return {};
  }
}

/// Made, or read if it was made before; in a folder it is kept until the clip is there.
Latent Run::make_latent(const NamedRequest& request) const {
  const std::string address = hash_hex(dump_json(describe_latent(in_use_, request)));
  ClipProgress steps(progress_, request.name, generator_.autoregressive() ? "code" : "step");
  const auto how_far = [&](std::int64_t done, std::int64_t total) { steps.at(done, total); };
  if (output_.to_stream())
    return generator_.denoise(request.clip, request.sampling, {}, {}, how_far);
  if (!job_.force && has_latent(job_.output, request.name)) {
    try {
      return read_latent(job_.output, request.name, address);
    } catch (const Error& error) {
      log_info("{}: it is remade", error.what());
    }
  }
  auto saved = std::chrono::steady_clock::now();
  const auto keep = [&](const SamplerState& state) {
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - saved).count() < job_.save_every) return;
    write_state(job_.output, request.name, state, address);
    saved = std::chrono::steady_clock::now();
  };
  Latent latent = generator_.denoise(request.clip, request.sampling, kept_state(request, address),
                                     keep, how_far);
  write_latent(job_.output, request.name, latent, address);
  remove_state(job_.output, request.name);
  return latent;
}

/// The clip's file and record, or with --latents-only the latent's.
void Run::make_file(Result& result) const {
  const NamedRequest& request = *result.asked.request;
  Json& record = result.record;
  if (job_.latents_only) {
    const io::AtomicFile held = output_.hold(request.name);
    const std::string path = output_.path_of(request.name, kLatentsExtension);
    make_latent(request);
    record["bytes"] = std::filesystem::file_size(path);
    record["xxh3"] = io::hash_file(path);
    add_extra(record, request.extra);
    io::update_file(output_.path_of(request.name, kLatentsRecordExtension),
                    dump_json_pretty(record));
    return;
  }
  output_.add_coded_size(record);
  result.made = output_.provide(record, request.name, job_.force, request.extra, [&] {
    return output_.encode(generator_.tokenizer(), make_latent(request), record);
  });
  // One that was asked for has a record of its own.
  if (!io::file_exists(output_.path_of(request.name, kLatentsRecordExtension)))
    remove_latent(job_.output, request.name);
}

/// Of the manifest, without what is known when the file is there.
Json Run::record_of(const NamedRequest& request) const {
  const Json facts = describe(request);
  Json record = {
      {"kind", job_.latents_only ? "latents" : "clip"},
      {"path", output_.path_of(request.name, job_.latents_only ? kLatentsExtension : ".mp4")}};
  record.update(facts);
  if (request.clip.given) record["condition"] = request.files.condition.path;
  if (request.clip.noise) record["noise"] = request.files.noise.path;
  if (request.clip.embedding) record["embedding"] = request.files.embedding.path;
  if (request.clip.negative_embedding)
    record["negative_embedding"] = request.files.negative_embedding.path;
  record["name"] = request.name;
  record["model"] = generator_.model().folder;
  add_adapter_paths(record, generator_.model());
  record["address"] = hash_hex(dump_json(facts));
  if (fp8_error_) record["fp8_error"] = *fp8_error_;
  if (job_.latents_only) {  // no facts of the latent, but what it is to be decoded with
    if (!request.encoder.empty()) record["encoder"] = request.encoder;
    record["quality"] = request.quality;
  }
  return record;
}

/// Runs on worker threads.
Result Run::make(Asked& asked) const {
  Result result;
  result.asked = std::move(asked);
  if (!result.asked.error.empty()) return result;
  const NamedRequest& request = *result.asked.request;
  const auto begin = std::chrono::steady_clock::now();
  result.asked.error = failure_of([&] {
    result.record = record_of(request);
    if (output_.to_stream())
      result.latent = make_latent(request);
    else
      make_file(result);
  });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

/// In the order of the prompts, on one thread.
void Run::hand_over(Result& result) {
  std::string& error = result.asked.error;
  if (error.empty() && output_.to_stream()) {
    if (output_.fits_stream(result.record))
      error = output_.stream(generator_.tokenizer(), result.latent, result.record);
    else
      error = "its size or rate differs from the first clip's: a stream has one";
  }
  if (!error.empty()) {
    output_.add_error({result.asked.where, error});
    return;
  }
  if (!output_.to_stream())
    output_.report(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
  progress_.add();
}

long Run::run(Slots& slots) {
  progress_.start("clips", prompts_.total());
  for_each_ordered<Asked, Result>(
      slots, [this] { return next(); }, [this](Asked& asked) { return make(asked); },
      [this](Result& result) { hand_over(result); });
  const io::InputStreams& input = prompts_.streams();
  const long errors = output_.finish(input);
  log_info("tensors had {} of the host's memory, at most", format_bytes(cpu_memory().peak));
  if (!job_.report.empty())
    write_generation_report(job_.report, output_.records(), generator_.model(), job_.dataset,
                            input.broken_off());
  input.check_whole("the clips of what came are made and kept");
  return errors;
}

}  // namespace

long generate_clips(const GenerateJob& job, Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest) {
  return Run(job, progress, manifest).run(slots);
}

}  // namespace vfm::generate
