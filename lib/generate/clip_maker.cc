// SPDX-License-Identifier: Apache-2.0
#include "generate/clip_maker.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dist/bytes.h"
#include "dist/together.h"
#include "generate/files/clip_progress.h"
#include "generate/files/generation_report.h"
#include "generate/files/latent_files.h"
#include "generate/ranks/rounds.h"
#include "generate/request/clip_record.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/process_name.h"
#include "share/ordered.h"
#include "tensor/device.h"
#include "tensor/failure.h"

namespace vfm::generate {
namespace {

ModelInUse in_use_by(const GenerateJob& job, const UsableModel& usable) {
  const models::LoadedModel& model = usable.generator->model();
  return {.hash = model.hash,
          .ema = model.ema,
          .autoregressive = usable.generator->autoregressive(),
          .compute = model.compute,
          .adapters = model.adapters,
          .fp8 = job.fp8,
          .device = job.device,
          .tokenizer_compute = usable.tokenizer_compute,
          // The codes are those of one rank.
          .parallel = usable.generator->autoregressive() ? "" : clip_layout_name(job.parallel),
          .quantize = job.quantize ? std::string(ops::row_format_name(*job.quantize)) : ""};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Clips that ranks make together, one after the other, for each load of either of two networks.
constexpr int kTogether = 4;

/// Clips that ranks which share clips begin before they finish the first: of a pipeline, as many as
/// it has stages, so that each stage has a clip to work on.
int begun_together(const ClipRanks& ranks, const Generator& generator) {
  if (ranks.clip().size() == 1) return 1;
  if (generator.autoregressive()) return ranks.network().pp_size();
  return generator.facts().boundary ? kTogether : 1;
}

/// What lies in the output's folder of a clip that is not finished.
class KeptWork {
 public:
  KeptWork(const GenerateJob& job, const ModelInUse& in_use, const NamedRequest& request)
      : job_(job),
        folder_(job.output == "-" ? "" : job.output),
        name_(request.name),
        address_(hash_hex(dump_json(describe_latent(in_use, request)))) {}

  /// The whole latent; none: it is still to be made.
  std::optional<Latent> latent() const {
    if (folder_.empty() || job_.force || !has_latent(folder_, name_)) return std::nullopt;
    try {
      return read_latent(folder_, name_, address_);
    } catch (const Error& error) {
      log_info("{}: it is made again", error.what());
      return std::nullopt;
    }
  }
  /// Where sampling goes on; at step 0: at its beginning.
  models::SamplerState state() const {
    if (folder_.empty() || job_.force || !has_state(folder_, name_)) return {};
    try {
      models::SamplerState state = read_state(folder_, name_, address_);
      log_info("'{}' resumes after step {}", name_, state.step);
      return state;
    } catch (const Error& error) {
      log_info("'{}' starts again: {}", name_, error.what());
      return {};
    }
  }
  /// Keeps states while the clip is sampled, as often as the job says.
  models::AfterStep keeper() const {
    if (folder_.empty()) return {};
    return [this,
            saved = std::chrono::steady_clock::now()](const models::SamplerState& state) mutable {
      const auto now = std::chrono::steady_clock::now();
      if (std::chrono::duration<double>(now - saved).count() < job_.save_every) return;
      write_state(folder_, name_, state, address_);
      saved = std::chrono::steady_clock::now();
    };
  }
  void keep(const Latent& latent) const {
    if (folder_.empty()) return;
    write_latent(folder_, name_, latent, address_);
    remove_state(folder_, name_);
  }

 private:
  const GenerateJob& job_;
  const std::string folder_, name_, address_;  ///< folder: empty for a stream
};

}  // namespace

std::string own_folder(const std::string& folder) {
  return io::join_path(folder, io::ProcessName::self().name());
}

ClipMaker::ClipMaker(const GenerateJob& job, dist::World& world, Progress& progress,
                     io::ManifestWriter& manifest, bool reports)
    : progress_(progress), model_(load_usable(job, world)) {
  dist::on_all_ranks(world, [&] {
    if (!ranks_.leads()) return;
    output_.emplace(job_.output, job_.encoder, progress, manifest,
                    reports && first() && !job_.parts);
    in_use_ = in_use_by(job_, model_);
    requests_.emplace(job_, generator(), in_use_, *output_);
  });
}

bool ClipMaker::helped() {
  if (ranks_.leads()) return false;
  model_.shared->serve(model_.tokenizer_alone.get());
  return true;
}

bool ClipMaker::begin_part(const std::string& temporary) {
  const std::string folder = dist::broadcast_bytes(ranks_.clips(), temporary, 0);
  temporary_.reset();
  if (!first() && !folder.empty()) temporary_.emplace(job_.output, own_folder(folder));
  return !folder.empty();
}

/// Before any clip is made, so no other thread uses the generator yet.
void ClipMaker::measure(const NamedRequest& request) {
  if (output_error_ || !(job_.fp8.any() || job_.quantize)) return;
  if (job_.quantize) {
    output_error_ = generator().quantize(request.clip, request.sampling);
    return;
  }
  output_error_ = generator().fp8_error(job_.fp8, request.clip, request.sampling);
  generator().set_fp8(job_.fp8);
}

void ClipMaker::use_known(std::optional<double> output_error) {
  if (output_error_ || !output_error) return;
  if (job_.quantize)
    generator().quantize();
  else
    generator().set_fp8(job_.fp8);
  output_error_ = output_error;
}

Asked ClipMaker::ask(Prompt prompt) {
  Asked asked;
  asked.error = failure_of(
      [&] {
        asked.request = requests_->make(std::move(prompt));
        measure(*asked.request);
      },
      &asked.cause);
  return asked;
}

/// Of the manifest, without what is known when the file is there.
Json ClipMaker::record_of(const NamedRequest& request) const {
  // All that decides the bytes of the file: its hash is the address. Latents are named as the clip
  // that will be made of them.
  const Json facts = job_.latents_only ? describe_latent(in_use_, request)
                                       : describe_clip(in_use_, request, *output_);
  Json record = {
      {"kind", job_.latents_only ? "latents" : "clip"},
      {"path", output_->path_of(request.name, job_.latents_only ? kLatentsExtension : ".mp4")}};
  record.update(facts);
  if (request.clip.given) record["condition"] = request.files.condition.path;
  if (request.clip.noise) record["noise"] = request.files.noise.path;
  if (request.clip.embedding) record["embedding"] = request.files.embedding.path;
  if (request.clip.negative_embedding)
    record["negative_embedding"] = request.files.negative_embedding.path;
  record["name"] = request.name;
  record["model"] = generator().model().folder;
  add_adapter_paths(record, in_use_);
  record["address"] = hash_hex(dump_json(facts));
  if (output_error_) record[job_.quantize ? "quantize_error" : "fp8_error"] = *output_error_;
  if (job_.latents_only) {  // no facts of the latent, but what it is to be decoded with
    if (!request.encoder.empty()) record["encoder"] = request.encoder;
    record["quality"] = request.quality;
  }
  return record;
}

/// Of a clip that is still to be made, the steps for which only the first of two networks is asked,
/// but not the last step. An error shows again when the clip is made.
ClipMaker::Begun ClipMaker::begin(const Asked& asked) {
  if (!asked.error.empty()) return {};
  Begun begun;
  const auto start = std::chrono::steady_clock::now();
  const NamedRequest& request = *asked.request;
  const KeptWork kept(job_, in_use_, request);
  failure_of([&] {
    const int steps_of_first = first_network_steps(request.sampling, *generator().facts().boundary);
    const auto ends = [&](const models::SamplerState& state) {
      return state.step >= steps_of_first;
    };
    if (is_made(request, record_of(request))) return;
    models::SamplerState state = kept.state();
    if (ends(state)) return;
    ClipProgress steps(progress_, request.name, "step");
    try {
      generator().denoise(
          request.clip, request.sampling, std::move(state),
          [&, keep = kept.keeper()](const models::SamplerState& now) mutable {
            if (ends(now)) throw now;  // ends the sampling here
            if (keep) keep(now);
          },
          [&](std::int64_t done, std::int64_t total) { steps.at(done, total); });
    } catch (models::SamplerState& reached) {
      begun.state = std::move(reached);
    }
  });
  begun.seconds = seconds_since(start);
  return begun;
}

/// Whether the file of a clip is there, or its latent.
bool ClipMaker::is_made(const NamedRequest& request, Json record) const {
  output_->add_coded_size(record);
  const bool file = !output_->to_stream() && !job_.latents_only && !job_.force;
  return (file && output_->is_there(record, request.name)) ||
         KeptWork(job_, in_use_, request).latent();
}

/// Of the clips that are still to be made, as many at a time as a pipeline has stages. What fails
/// for one of them fails again when it is made alone.
std::vector<ClipMaker::Begun> ClipMaker::write_codes(const std::vector<Asked>& asked) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Begun> begun(asked.size());
  std::vector<CodeJob> jobs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i].error.empty()) continue;
    failure_of([&] {
      const NamedRequest& request = *asked[i].request;
      if (is_made(request, record_of(request))) return;
      jobs.push_back(generator().code_job(request.clip, request.sampling));
      places.push_back(i);
    });
  }
  const auto most = static_cast<std::size_t>(begun_together(ranks_, generator()));
  for (std::size_t first = 0; first < jobs.size(); first += most) {
    const auto some = std::span(jobs).subspan(first, std::min(most, jobs.size() - first));
    std::deque<ClipProgress> progress;
    for (std::size_t i = first; i < first + some.size(); ++i)
      progress.emplace_back(progress_, asked[places[i]].request->name, "code");
    std::vector<Latent> latents =
        generator().write(some, [&](std::size_t video, std::int64_t done, std::int64_t total) {
          progress[video].at(done, total);
        });
    for (std::size_t i = 0; i < some.size(); ++i)
      begun[places[first + i]].latent = std::move(latents[i]);
  }
  const double seconds =
      seconds_since(start) / static_cast<double>(std::max<std::size_t>(1, jobs.size()));
  for (const std::size_t place : places)
    begun[place].seconds = seconds;
  return begun;
}

Result ClipMaker::make(Asked& asked, Begun begun) {
  Result result;
  result.asked = std::move(asked);
  if (!result.asked.error.empty()) return result;
  const NamedRequest& request = *result.asked.request;
  const auto start = std::chrono::steady_clock::now();
  // Made, or read if it was made before; in a folder it is kept until the clip is there.
  const auto latent = [&]() -> Latent {
    const KeptWork kept(job_, in_use_, request);
    if (begun.latent) {
      kept.keep(*begun.latent);
      return *std::move(begun.latent);
    }
    ClipProgress steps(progress_, request.name, generator().autoregressive() ? "code" : "step");
    if (std::optional<Latent> whole = kept.latent()) return *std::move(whole);
    models::SamplerState state = begun.state.step > 0 ? std::move(begun.state) : kept.state();
    Latent made =
        generator().denoise(request.clip, request.sampling, std::move(state), kept.keeper(),
                            [&](std::int64_t done, std::int64_t total) { steps.at(done, total); });
    kept.keep(made);
    return made;
  };
  const auto make_latents_file = [&] {
    const io::AtomicFile held = output_->hold(request.name);
    const std::string path = output_->path_of(request.name, kLatentsExtension);
    latent();
    result.record["bytes"] = io::size_of(path).value_or(0);
    result.record["xxh3"] = io::hash_file(path);
    add_extra(result.record, request.extra);
    io::update_file(output_->path_of(request.name, kLatentsRecordExtension),
                    dump_json_pretty(result.record));
  };
  const auto make_clip_file = [&] {
    output_->add_coded_size(result.record);
    auto claim = output_->claim(result.record, request.name, job_.force, request.extra);
    result.made = claim.has_value();
    if (claim) {
      const std::string mp4 = output_->encode(generator().tokenizer(), latent(), result.record);
      output_->keep(*std::move(claim), mp4, result.record, request.name, request.extra);
    }
    // One that was asked for has a record of its own.
    if (!io::file_exists(output_->path_of(request.name, kLatentsRecordExtension)))
      remove_latent(job_.output, request.name);
  };
  result.asked.error = failure_of(
      [&] {
        result.record = record_of(request);
        if (output_->to_stream())
          result.latent = latent(), result.tokenizer = &generator().tokenizer();
        else if (job_.latents_only)
          make_latents_file();
        else
          make_clip_file();
      },
      &result.asked.cause);
  result.seconds = begun.seconds + seconds_since(start);
  return result;
}

/// What rank 0 reads of the input for one round, and what each costs.
std::vector<Asked> ClipMaker::read_round(const std::function<std::optional<Asked>()>& next,
                                         std::size_t most, std::vector<std::uint64_t>& costs,
                                         bool& more) const {
  std::vector<Asked> asked;
  while (asked.size() < most) {
    std::optional<Asked> one = next();
    more = one.has_value();
    if (!more) break;
    const NamedRequest* const request = one->error.empty() ? one->request.get() : nullptr;
    costs.push_back(request ? clip_cost(*request, generator().shape().latent_of(request->clip),
                                        generator().autoregressive())
                            : 0);
    asked.push_back(*std::move(one));
  }
  return asked;
}

/// In the order of `asked`. What ranks make together they exchange on this thread.
std::vector<Result> ClipMaker::make_all(std::vector<Asked>& asked, share::Slots& slots) {
  std::vector<Result> results;
  if (ranks_.clip().size() > 1) {
    std::vector<Begun> begun(asked.size());
    if (ranks_.network().pp_size() > 1)
      begun = write_codes(asked);
    else if (generator().facts().boundary && asked.size() > 1)
      for (std::size_t i = 0; i < asked.size(); ++i)
        begun[i] = begin(asked[i]);
    for (std::size_t i = 0; i < asked.size(); ++i)
      results.push_back(make(asked[i], std::move(begun[i])));
    return results;
  }
  std::size_t taken = 0;
  const auto take = [&]() -> std::optional<Asked> {
    if (taken == asked.size()) return std::nullopt;
    return std::move(asked[taken++]);
  };
  share::for_each_ordered<Asked, Result>(
      slots, take, [this](Asked& one) { return make(one); },
      [&](Result& result) { results.push_back(std::move(result)); });
  return results;
}

bool ClipMaker::make_in_rounds(const std::function<std::optional<Asked>()>& next,
                               const std::function<void(Result&)>& done, share::Slots& slots) {
  if (ranks_.world().size() == 1) return false;
  const int each = ranks_.clip().size() > 1 ? begun_together(ranks_, generator()) : slots.threads();
  const auto most = static_cast<std::size_t>(each) * ranks_.clips().size();
  for (bool more = true; more;) {
    std::vector<std::uint64_t> costs;
    std::vector<Asked> asked;
    if (first()) asked = read_round(next, most, costs, more);
    Round round(ranks_.clips(), std::move(asked), costs, more, output_error_);
    more = round.more();
    for (Result& result : round.collect(make_all(round.mine(), slots))) {
      result.tokenizer = &generator().tokenizer();
      const bool here = !result.asked.error.empty() || output_->to_stream() ||
                        io::file_exists(result.record["path"].get<std::string>());
      if (!here)
        fail("rank 0 cannot find '{}', which another rank made: all ranks need one file system",
             result.record["path"].get<std::string>());
      done(result);
    }
  }
  return true;
}

void ClipMaker::report(const std::string& incomplete) {
  report(output_->records(), incomplete);
}

void ClipMaker::report(const std::vector<Json>& records, const std::string& incomplete) const {
  write_generation_report(job_.report, records, generator().model(), job_.dataset, incomplete);
}

void ClipMaker::finished() {
  log_info("tensors had {} of the host's memory, at most", format_bytes(cpu_memory().peak));
  if (model_.shared) model_.shared->end();
}

}  // namespace vfm::generate
