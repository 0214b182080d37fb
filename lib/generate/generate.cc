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
#include "dist/together.h"
#include "generate/clip_output.h"
#include "generate/clip_progress.h"
#include "generate/clip_record.h"
#include "generate/generation_report.h"
#include "generate/latent_files.h"
#include "generate/named_request.h"
#include "generate/rounds.h"
#include "generate/usable_model.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "tensor/failure.h"

namespace vfm::generate {

namespace {

class Run {
 public:
  Run(const GenerateJob& job, const ClipRanks& ranks, Generator generator,
      const std::string& tokenizer_compute, Progress& progress, io::ManifestWriter& manifest);
  long run(Slots& slots);

 private:
  std::optional<Asked> next();
  void measure(const NamedRequest& request);
  Json describe(const NamedRequest& request) const;
  Json record_of(const NamedRequest& request) const;
  Result make(Asked& asked) const;
  void make_file(Result& result) const;
  Latent make_latent(const NamedRequest& request) const;
  SamplerState kept_state(const NamedRequest& request, const std::string& address) const;
  void hand_over(Result& result);
  void check_is_here(const Json& record) const;
  std::vector<Asked> read_round(std::size_t most, std::vector<std::uint64_t>& costs, bool& more);
  std::vector<Result> make_all(std::vector<Asked>& asked, Slots& slots);
  void make_in_rounds(Slots& slots);

  const GenerateJob& job_;
  const ClipRanks& ranks_;
  Progress& progress_;
  Generator generator_;
  ModelInUse in_use_;
  ClipOutput output_;
  std::optional<PromptReader> prompts_;  ///< of the first rank
  RequestMaker requests_;
  std::optional<double> output_error_;  ///< of FP8 or 8 bits, measured on the first request
};

Run::Run(const GenerateJob& job, const ClipRanks& ranks, Generator generator,
         const std::string& tokenizer_compute, Progress& progress, io::ManifestWriter& manifest)
    : job_(job),
      ranks_(ranks),
      progress_(progress),
      generator_(std::move(generator)),
      in_use_{generator_,
              generator_.model().hash,
              job.fp8,
              job.device,
              tokenizer_compute,
              job.parallel.name(),
              job.quantize ? std::string(ops::row_format_name(*job.quantize)) : ""},
      output_(job.output, job.encoder, progress, manifest, ranks.first()),
      requests_(job, in_use_, output_) {
  if (ranks.first()) prompts_.emplace(job.prompts, job.defaults);
}

/// One caller at a time, in order.
std::optional<Asked> Run::next() {
  std::optional<PromptLine> line = prompts_->next();
  if (!line) return std::nullopt;
  Asked asked{nullptr, std::move(line->where), std::move(line->error)};
  if (!asked.error.empty()) return asked;
  asked.error = failure_of(
      [&] {
        asked.request = requests_.make(std::move(line->prompt));
        if ((job_.fp8.any() || job_.quantize) && !output_error_) measure(*asked.request);
      },
      &asked.cause);
  const double most = job_.quantize ? job_.quantize_tolerance : job_.fp8_tolerance;
  if (output_error_ && !(*output_error_ <= most))
    fail(
        "{0} the model's output by {2:.4f} of its size, more than --{1}-tolerance {3} allows: "
        "generate without --{1}, or allow more",
        job_.quantize ? "weights in 8 bits change" : "FP8 changes",
        job_.quantize ? "quantize" : "fp8", *output_error_, most);
  return asked;
}

/// Before any clip is made, so no other thread uses the generator yet.
void Run::measure(const NamedRequest& request) {
  if (job_.quantize) {
    output_error_ = generator_.quantize(request.clip, request.sampling);
    return;
  }
  output_error_ = generator_.fp8_error(job_.fp8, request.clip, request.sampling);
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
  if (output_error_) record[job_.quantize ? "quantize_error" : "fp8_error"] = *output_error_;
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
  result.asked.error = failure_of(
      [&] {
        result.record = record_of(request);
        if (output_.to_stream())
          result.latent = make_latent(request);
        else
          make_file(result);
      },
      &result.asked.cause);
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
    output_.add_error({result.asked.where, error, result.asked.cause});
    return;
  }
  if (!output_.to_stream())
    output_.report(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
  progress_.add();
}

/// A clip that another rank has made.
void Run::check_is_here(const Json& record) const {
  const std::string path = record["path"];
  if (!io::file_exists(path))
    fail("'{}' was made by another rank, and rank 0 does not find it: all need one file system",
         path);
}

/// What rank 0 reads of the input for one round, and what each costs.
std::vector<Asked> Run::read_round(std::size_t most, std::vector<std::uint64_t>& costs,
                                   bool& more) {
  std::vector<Asked> asked;
  while (asked.size() < most) {
    std::optional<Asked> one = next();
    more = one.has_value();
    if (!more) break;
    const NamedRequest* const request = one->error.empty() ? one->request.get() : nullptr;
    costs.push_back(request ? clip_cost(*request, generator_.shape().latent_of(request->clip),
                                        generator_.autoregressive())
                            : 0);
    asked.push_back(*std::move(one));
  }
  return asked;
}

/// In the order of `asked`. What ranks make together they exchange on this thread.
std::vector<Result> Run::make_all(std::vector<Asked>& asked, Slots& slots) {
  std::vector<Result> results;
  if (ranks_.clip().size() > 1) {
    for (Asked& one : asked)
      results.push_back(make(one));
    return results;
  }
  std::size_t taken = 0;
  const auto take = [&]() -> std::optional<Asked> {
    if (taken == asked.size()) return std::nullopt;
    return std::move(asked[taken++]);
  };
  for_each_ordered<Asked, Result>(
      slots, take, [this](Asked& one) { return make(one); },
      [&](Result& result) { results.push_back(std::move(result)); });
  return results;
}

void Run::make_in_rounds(Slots& slots) {
  const int each = ranks_.clip().size() > 1 ? 1 : slots.threads();
  const auto most = static_cast<std::size_t>(each) * ranks_.clips().size();
  for (bool more = true; more;) {
    std::vector<std::uint64_t> costs;
    std::vector<Asked> asked;
    if (ranks_.first()) asked = read_round(most, costs, more);
    Round round(ranks_.clips(), std::move(asked), costs, more, output_error_);
    more = round.more();
    for (Result& result : round.collect(make_all(round.mine(), slots))) {
      if (result.asked.error.empty() && !output_.to_stream()) check_is_here(result.record);
      hand_over(result);
    }
  }
}

long Run::run(Slots& slots) {
  if (prompts_) progress_.start("clips", prompts_->total());
  if (ranks_.world().size() > 1)
    make_in_rounds(slots);
  else
    for_each_ordered<Asked, Result>(
        slots, [this] { return next(); }, [this](Asked& asked) { return make(asked); },
        [this](Result& result) { hand_over(result); });
  log_info("tensors had {} of the host's memory, at most", format_bytes(cpu_memory().peak));
  if (!prompts_) return 0;
  const io::InputStreams& input = prompts_->streams();
  const long errors = output_.finish(input);
  if (!job_.report.empty())
    write_generation_report(job_.report, output_.records(), generator_.model(), job_.dataset,
                            input.broken_off());
  input.check_whole("the clips of what came are made and kept");
  return errors;
}

}  // namespace

long generate_clips(const GenerateJob& job, dist::World& world, Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest) {
  GenerateJob agreed = job;
  const std::unique_ptr<ClipRanks> ranks = agree_on_ranks(agreed, world);
  UsableModel model = load_usable(agreed, *ranks);
  std::optional<Run> run;
  dist::on_all_ranks(world, [&] {
    if (ranks->leads())
      run.emplace(agreed, *ranks, *std::move(model.generator), model.tokenizer_compute, progress,
                  manifest);
  });
  if (!run) {
    model.shared->serve(model.tokenizer_alone.get());
    return 0;
  }
  const long errors = run->run(slots);
  if (model.shared) model.shared->end();
  return errors;
}

}  // namespace vfm::generate
