// SPDX-License-Identifier: Apache-2.0
#include "generate/clip_maker.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "generate/files/clip_progress.h"
#include "generate/files/latent_files.h"
#include "generate/request/clip_record.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "tensor/failure.h"

namespace vfm::generate {

ClipMaker::ClipMaker(const GenerateJob& job, Generator generator,
                     const std::string& tokenizer_compute, const ClipFolder& output,
                     Progress& progress)
    : job_(job),
      progress_(progress),
      output_(output),
      generator_(std::move(generator)),
      in_use_{generator_,
              generator_.model().hash,
              job.fp8,
              job.device,
              tokenizer_compute,
              job.parallel.name(),
              job.quantize ? std::string(ops::row_format_name(*job.quantize)) : ""},
      requests_(job, in_use_, output_) {}

/// Before any clip is made, so no other thread uses the generator yet.
void ClipMaker::measure(const NamedRequest& request) {
  if (output_error_ || !(job_.fp8.any() || job_.quantize)) return;
  if (job_.quantize) {
    output_error_ = generator_.quantize(request.clip, request.sampling);
    return;
  }
  output_error_ = generator_.fp8_error(job_.fp8, request.clip, request.sampling);
  generator_.set_fp8(job_.fp8);
}

void ClipMaker::use_known(double output_error) {
  if (output_error_) return;
  if (job_.quantize)
    generator_.quantize();
  else
    generator_.set_fp8(job_.fp8);
  output_error_ = output_error;
}

void check_output_error(const GenerateJob& job, const std::optional<double>& error) {
  if (error && !(*error <= job.tolerance))
    fail(
        "{0} the model's output by {2:.4f} of its size, more than --tolerance {3} allows: leave "
        "out --{1}, or allow more",
        job.quantize ? "weights in 8 bits change" : "FP8 changes",
        job.quantize ? "quantize" : "fp8", *error, job.tolerance);
}

Asked ClipMaker::ask(PromptLine line) {
  Asked asked{nullptr, std::move(line.where), std::move(line.error)};
  if (!asked.error.empty()) return asked;
  asked.error = failure_of(
      [&] {
        asked.request = requests_.make(std::move(line.prompt));
        measure(*asked.request);
      },
      &asked.cause);
  check_output_error(job_, output_error_);
  return asked;
}

/// All that decides the bytes of the file: its hash is the address. Latents are named as the clip
/// that will be made of them.
Json ClipMaker::describe(const NamedRequest& request) const {
  return job_.latents_only ? describe_latent(in_use_, request)
                           : describe_clip(in_use_, request, output_);
}

models::SamplerState ClipMaker::kept_state(const NamedRequest& request,
                                           const std::string& address) const {
  if (!has_state(job_.output, request.name) || job_.force) return {};
  try {
    models::SamplerState state = read_state(job_.output, request.name, address);
    log_info("'{}' resumes after step {}", request.name, state.step);
    return state;
  } catch (const Error& error) {
    log_info("'{}' starts again: {}", request.name, error.what());
    return {};
  }
}

/// Made, or read if it was made before; in a folder it is kept until the clip is there.
Latent ClipMaker::make_latent(const NamedRequest& request) const {
  const std::string address = hash_hex(dump_json(describe_latent(in_use_, request)));
  ClipProgress steps(progress_, request.name, generator_.autoregressive() ? "code" : "step");
  const auto how_far = [&](std::int64_t done, std::int64_t total) { steps.at(done, total); };
  if (output_.to_stream())
    return generator_.denoise(request.clip, request.sampling, {}, {}, how_far);
  if (!job_.force && has_latent(job_.output, request.name)) {
    try {
      return read_latent(job_.output, request.name, address);
    } catch (const Error& error) {
      log_info("{}: it is made again", error.what());
    }
  }
  auto saved = std::chrono::steady_clock::now();
  const auto keep = [&](const models::SamplerState& state) {
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
void ClipMaker::make_file(Result& result) const {
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
Json ClipMaker::record_of(const NamedRequest& request) const {
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

Result ClipMaker::make(Asked& asked) const {
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

}  // namespace vfm::generate
