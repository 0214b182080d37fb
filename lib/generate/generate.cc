// SPDX-License-Identifier: Apache-2.0
#include "generate/generate.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/units.h"
#include "generate/clip_output.h"
#include "generate/clip_progress.h"
#include "generate/clip_record.h"
#include "generate/generation_report.h"
#include "generate/given_files.h"
#include "generate/latent_files.h"
#include "generate/pipeline.h"
#include "io/file.h"
#include "media/encoder.h"
#include "media/frame_rate.h"
#include "models/tokenizer.h"
#include "tensor/failure.h"

namespace vfm::generate {

namespace {

/// Of a run it was taken when the model was read: the checkpoint may be gone by now.
std::string hash_of(const models::LoadedModel& model) {
  return model.complete.empty() ? generate::model_hash(model.folder) : model.complete;
}

/// A model that cannot be used, and options that do not suit it, are known before any work.
generate::Generator load(const GenerateJob& job) {
  return as_usage([&] {
    std::optional<DType> compute = job.compute;
    if (!compute && job.fp8.any()) compute = DType::bf16;
    if (!compute && job.device == Device::cpu) compute = DType::f32;
    const bool pipeline = generate::is_pipeline(job.model);
    if (pipeline) job.lora.check_for(job.model, false, false);
    models::LoadedModel model =
        pipeline ? generate::load_pipeline(job.model, compute, job.device)
                 : models::load_model(job.model, job.ema, compute, job.device, job.lora);
    if (!job.lora.sets.empty()) models::add_adapters(model, job.lora, job.ema);
    const bool moved = !job.tokenizer.empty() || !job.text_encoder.empty();
    if (moved && pipeline) generate::add_part_hashes(model.train);
    if (!job.tokenizer.empty())
      model.train["tokenizer"] =
          models::moved_tokenizer(model.train.value("tokenizer", Json()), job.tokenizer);
    generate::Generator generator(std::move(model), job.cache, job.text_encoder);
    job.defaults.choice.check_for(generator.autoregressive(), generator.facts().sampling.sampler);
    job.defaults.choice.over(generator.facts().sampling).validate();
    if (job.fp8.any()) generator.set_fp8(job.fp8);  // refuses a model that cannot
    return generator;
  });
}

/// What became of one order.
struct Result {
  ClipOrder order;
  Json record;              ///< of the manifest
  bool made = true;         ///< else it was there
  generate::Latent latent;  ///< for the stream
  double seconds = 0;       ///< that it took
};

class Run {
 public:
  Run(const GenerateJob& job, Progress& progress, io::ManifestWriter& manifest);
  long run(Slots& slots);

 private:
  std::optional<ClipOrder> next_order();
  void measure_fp8(const ClipOrder& order);
  void complete(ClipOrder& order);
  void note_sizes(const ClipOrder& order);
  Json describe(const ClipOrder& order) const;
  Json describe_clip(const ClipOrder& order) const;
  Json record_of(const ClipOrder& order) const;
  Result make(ClipOrder& order) const;
  void make_file(Result& result) const;
  generate::Latent make_latent(const ClipOrder& order) const;
  generate::SamplerState kept_state(const ClipOrder& order, const std::string& address) const;
  void hand_over(Result& result);

  const GenerateJob& job_;
  Progress& progress_;
  generate::Generator generator_;
  ModelInUse in_use_;
  ClipOutput output_;
  PromptReader prompts_;
  std::set<std::string> names_;      ///< taken in this run
  std::optional<double> fp8_error_;  ///< measured on the first order
  bool noted_size_ = false, noted_odd_ = false, noted_guidance_ = false;
};

Run::Run(const GenerateJob& job, Progress& progress, io::ManifestWriter& manifest)
    : job_(job),
      progress_(progress),
      generator_(load(job)),
      in_use_{generator_, hash_of(generator_.model()), job.fp8, job.device},
      output_(job.output, job.encoder, progress, manifest),
      prompts_(job.prompts, job.defaults) {}

/// The next prompt as an order that lacks nothing, or with an error. One caller at a time, in
/// order.
std::optional<ClipOrder> Run::next_order() {
  std::optional<ClipOrder> order = prompts_.next();
  if (!order || !order->error.empty()) return order;
  order->error = failure_of([&] {
    complete(*order);
    if (job_.fp8.any() && !fp8_error_) measure_fp8(*order);
  });
  if (fp8_error_ && !(*fp8_error_ <= job_.fp8_tolerance))
    fail(
        "FP8 changes the model's output by {:.4f} of its size, more than --fp8-tolerance {} "
        "allows: "
        "generate without --fp8, or allow more",
        *fp8_error_, job_.fp8_tolerance);
  return order;
}

/// Before any clip is made: nobody else uses the generator yet.
void Run::measure_fp8(const ClipOrder& order) {
  fp8_error_ = generator_.fp8_error(job_.fp8, order.request, order.sampling);
  generator_.set_fp8(job_.fp8);
}

void Run::note_sizes(const ClipOrder& order) {
  const generate::TrainedSize& largest = generator_.largest();
  const generate::ClipRequest& request = order.request;
  if (!noted_size_ && generator_.beyond_training(request)) {
    noted_size_ = true;
    log_warning(
        "{} frames of {}x{} are more than the model was trained on ({} of {}x{}): {}the clip may "
        "lack detail",
        request.frames, request.width, request.height, largest.frames, largest.width,
        largest.height, generator_.autoregressive() ? "" : "positions are squeezed, ");
  }
  if (output_.to_stream() || job_.latents_only || noted_odd_) return;
  const auto [width, height] = media::coded_size(order.encoder, request.width, request.height);
  noted_odd_ = width != request.width || height != request.height;
  if (noted_odd_)
    log_warning(
        "{} cannot hold {}x{}: the last column or row is repeated, the mp4 is {}x{}; with -o - or "
        "--encoder ffv1 nothing is added",
        order.encoder, request.width, request.height, width, height);
}

void Run::complete(ClipOrder& order) {
  refuse_other_model(in_use_, order);
  order.choice.check_for(generator_.autoregressive(), generator_.facts().sampling.sampler);
  order.sampling = order.choice.over(generator_.facts().sampling);
  const generate::TrainedSize& trained = generator_.usual();
  generate::ClipRequest& request = order.request;
  generate::fill_in(request, {trained.frames, trained.height, trained.width}, trained.fps);
  if (order.encoder.empty()) order.encoder = job_.latents_only ? job_.encoder : output_.encoder();
  generator_.shape().check_size(request);
  if (!std::exchange(noted_guidance_, true))
    generate::note_guidance(job_.model, order.sampling.guidance);
  media::frame_rate(request.fps);  // refuses a rate now, not after the clip was made
  note_sizes(order);
  read_given_files(order, generator_.shape());
  const bool named = !order.name.empty();
  for (;; ++request.seed) {
    if (!named) {
      const std::string words = slug(request.prompt);
      order.name = words + (words.empty() ? "" : "-") +
                   hash_hex(dump_json(describe_clip(order))).substr(0, 16);
    }
    if (names_.insert(order.name).second) return;
    // A bare prompt that comes again means another clip; a name or a seed of its own says which.
    if (named) fail("the name '{}' is taken by another prompt of this run", order.name);
    if (order.own_seed) fail("the same clip was asked for before");
  }
}

/// All that decides the bytes of the file: its hash is the address.
Json Run::describe(const ClipOrder& order) const {
  return job_.latents_only ? describe_latent(in_use_, order) : describe_clip(order);
}

/// The same of the clip: latents are named as the clip that will be made of them.
Json Run::describe_clip(const ClipOrder& order) const {
  Json record = describe_latent(in_use_, order);
  const std::string& encoder = order.encoder.empty() ? output_.encoder() : order.encoder;
  if (!output_.to_stream())
    record.update({{"encoder", encoder}, {"quality", order.quality.value_or(job_.quality)}});
  return record;
}

generate::SamplerState Run::kept_state(const ClipOrder& order, const std::string& address) const {
  if (!has_state(job_.output, order.name) || job_.force) return {};
  try {
    generate::SamplerState state = read_state(job_.output, order.name, address);
    log_info("'{}' goes on after step {}", order.name, state.step);
    return state;
  } catch (const Error& error) {
    log_info("'{}' begins anew: {}", order.name, error.what());
    return {};
  }
}

/// Made, or read if it was made before; in a folder it is kept until the clip is there.
generate::Latent Run::make_latent(const ClipOrder& order) const {
  const std::string address = hash_hex(dump_json(describe_latent(in_use_, order)));
  ClipProgress steps(progress_, order.name, generator_.autoregressive() ? "code" : "step");
  const auto how_far = [&](std::int64_t done, std::int64_t total) { steps.at(done, total); };
  if (output_.to_stream())
    return generator_.denoise(order.request, order.sampling, {}, {}, how_far);
  if (!job_.force && has_latent(job_.output, order.name)) {
    try {
      return read_latent(job_.output, order.name, address);
    } catch (const Error& error) {
      log_info("{}: it is made again", error.what());
    }
  }
  auto saved = std::chrono::steady_clock::now();
  const auto keep = [&](const generate::SamplerState& state) {
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - saved).count() < job_.save_every) return;
    write_state(job_.output, order.name, state, address);
    saved = std::chrono::steady_clock::now();
  };
  generate::Latent latent =
      generator_.denoise(order.request, order.sampling, kept_state(order, address), keep, how_far);
  write_latent(job_.output, order.name, latent, address);
  remove_state(job_.output, order.name);
  return latent;
}

/// The clip's file and record, or with --latents-only the latent's.
void Run::make_file(Result& result) const {
  const ClipOrder& order = result.order;
  Json& record = result.record;
  if (job_.latents_only) {
    const io::AtomicFile held = output_.hold(order.name);
    const std::string path = output_.path_of(order.name, kLatentsExtension);
    make_latent(order);
    record["bytes"] = std::filesystem::file_size(path);
    record["xxh3"] = io::hash_file(path);
    add_extra(record, order.extra);
    io::update_file(output_.path_of(order.name, kLatentsRecordExtension), dump_json_pretty(record));
    return;
  }
  output_.add_coded_size(record);
  result.made = output_.provide(record, order.name, job_.force, order.extra, [&] {
    return output_.encode(generator_.tokenizer(), make_latent(order), record);
  });
  // One that was asked for has a record of its own.
  if (!io::file_exists(output_.path_of(order.name, kLatentsRecordExtension)))
    remove_latent(job_.output, order.name);
}

/// Of the manifest, without what is known when the file is there.
Json Run::record_of(const ClipOrder& order) const {
  const Json facts = describe(order);
  Json record = {
      {"kind", job_.latents_only ? "latents" : "clip"},
      {"path", output_.path_of(order.name, job_.latents_only ? kLatentsExtension : ".mp4")}};
  record.update(facts);
  if (order.request.given) record["condition"] = order.condition;
  if (order.request.noise) record["noise"] = order.noise;
  if (order.request.embedding) record["embedding"] = order.embedding;
  if (order.request.negative_embedding) record["negative_embedding"] = order.negative_embedding;
  record["name"] = order.name;
  record["model"] = generator_.model().folder;
  if (!generator_.model().lora_path.is_null()) record["lora_path"] = generator_.model().lora_path;
  record["address"] = hash_hex(dump_json(facts));
  if (fp8_error_) record["fp8_error"] = *fp8_error_;
  if (job_.latents_only) {  // no facts of the latent, but what it is to be decoded with
    if (!order.encoder.empty()) record["encoder"] = order.encoder;
    record["quality"] = order.quality.value_or(job_.quality);
  }
  return record;
}

/// Runs on worker threads.
Result Run::make(ClipOrder& order) const {
  Result result;
  result.order = std::move(order);
  ClipOrder& mine = result.order;
  if (!mine.error.empty()) return result;
  const auto begin = std::chrono::steady_clock::now();
  mine.error = failure_of([&] {
    result.record = record_of(mine);
    if (output_.to_stream())
      result.latent = make_latent(mine);
    else
      make_file(result);
  });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

/// In the order of the prompts, on one thread.
void Run::hand_over(Result& result) {
  ClipOrder& order = result.order;
  if (order.error.empty() && output_.to_stream()) {
    if (output_.fits_stream(result.record))
      order.error = output_.stream(generator_.tokenizer(), result.latent, result.record);
    else
      order.error = "its size or rate differs from the first clip's: a stream has one";
  }
  if (!order.error.empty()) {
    output_.add_error({order.where, order.error});
    return;
  }
  if (!output_.to_stream())
    output_.tell(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
  progress_.add();
}

long Run::run(Slots& slots) {
  progress_.start("clips", prompts_.total());
  for_each_ordered<ClipOrder, Result>(
      slots, [this] { return next_order(); }, [this](ClipOrder& order) { return make(order); },
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
