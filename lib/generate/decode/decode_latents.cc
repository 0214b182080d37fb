// SPDX-License-Identifier: Apache-2.0
#include "generate/decode/decode_latents.h"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "dist/bytes.h"
#include "dist/together.h"
#include "generate/decode/shared_tokenizer.h"
#include "generate/files/clip_output.h"
#include "generate/files/latent_files.h"
#include "generate/ranks/clip_messages.h"
#include "generate/request/latent_facts.h"
#include "generate/request/named_request.h"
#include "generate/request/prompts.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/manifest.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_facts.h"
#include "models/tokenizer_family.h"
#include "share/ordered.h"
#include "tensor/device.h"
#include "tensor/failure.h"

namespace vfm::generate {
namespace {

/// Of a model's folder: what decodes its latents, and what they are known by.
struct Model {
  std::unique_ptr<models::VideoTokenizer> tokenizer;
  std::string hash, compute;  ///< compute: of choose_compute()
};

class Decoding {
 public:
  Decoding(const DecodeJob& job, dist::World& world, dist::Group& ranks, Progress& progress,
           io::ManifestWriter& manifest)
      : job_(job),
        world_(world),
        ranks_(ranks),
        progress_(progress),
        output_(job.output, job.encoder, progress, manifest, world.rank() == 0) {
    if (world.rank() == 0)
      reader_.emplace(job.inputs, [this](const io::Fault& fault) {
        waiting_.push_back({{}, fault.input, fault.message});
      });
    if (!job_.model.empty()) as_usage([&] { return &model(job_.model); });
  }

  long run(share::Slots& slots) {
    if (reader_) progress_.start("clips", 0);
    if (ranks_.size() > 1)
      decode_in_rounds(slots);
    else
      share::for_each_ordered<DealtLatents, DecodedLatents>(
          slots, [this] { return next(); }, [this](DealtLatents& input) { return make(input); },
          [this](DecodedLatents& result) { hand_over(result); },
          [](const DecodedLatents& result) {
            return held_bytes(result.input.record.json) + result.mp4.size() +
                   held_bytes(result.latent.values) + held_bytes(result.record);
          });
    if (!reader_) return 0;
    const long errors = output_.finish(reader_->streams(), "latents");
    reader_->streams().check_whole("the clips of what came are made and kept");
    return errors;
  }

 private:
  void decode_in_rounds(share::Slots& slots);
  std::optional<DealtLatents> next();
  DecodedLatents make(DealtLatents& input);
  void decode(DecodedLatents& result);
  bool to_be_shared(const Model& with, const Latent& latent) const;
  void have_shared(DecodedLatents& result);
  void serve_shared();
  const models::VideoTokenizer& tokenizer_of_all(const std::string& folder);
  void hand_over(DecodedLatents& result);
  std::string encoder_of(const Json& latents) const;
  int quality_of(const Json& latents, const std::string& where) const;
  const Model& model(const std::string& folder);

  const DecodeJob& job_;
  dist::World& world_;
  dist::Group& ranks_;  ///< all of it
  bool few_ = false;    ///< this round has fewer latents than ranks
  Progress& progress_;
  ClipFolder output_;
  std::optional<io::ManifestReader> reader_;  ///< of rank 0
  std::deque<DealtLatents> waiting_;          ///< read, in order
  std::mutex mutex_;                          // guards models_
  std::map<std::string, Model> models_;
  std::set<std::string> names_;  ///< taken in this run
};

std::optional<DealtLatents> Decoding::next() {
  if (waiting_.empty())
    if (auto record = reader_->next()) waiting_.push_back({*record, record->where, {}});
  if (waiting_.empty()) return std::nullopt;
  DealtLatents input = std::move(waiting_.front());
  waiting_.pop_front();
  return input;
}

/// The record of the latents: the input itself, or what lies beside a file.
Json latents_record(const io::Record& input) {
  if (input.kind == "latents") return input.json;
  const std::string given = input.path();
  std::optional<std::string> stem;
  for (const std::string extension : {kLatentsExtension, kLatentsRecordExtension})
    if (given.ends_with(extension)) stem = given.substr(0, given.size() - extension.size());
  if (!stem)
    fail("'{}' holds no latents: give files of vfm-generate --latents-only, which end in {} or {}",
         given, kLatentsExtension, kLatentsRecordExtension);
  const std::string path = *stem + kLatentsExtension, side = *stem + kLatentsRecordExtension;
  Json record = parse_json(io::read_file(side), "'" + side + "'");
  if (!record.is_object()) fail("'{}' is not a JSON object", side);
  record["path"] = path;
  return record;
}

const Model& Decoding::model(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  const auto known = models_.find(folder);
  if (known != models_.end()) return known->second;  // map nodes stay where they are
  Model made = models::retry_if_gone(folder, [&]() -> Model {
    const models::ModelFolder source(folder);
    models::TokenizerConfig config = models::read_facts(source).tokenizer.value();
    if (!job_.tokenizer.empty())
      config = models::moved_tokenizer(std::move(config), job_.tokenizer);
    std::string compute = choose_compute(config, job_.compute, job_.device);
    return {models::make_tokenizer(config, job_.device, job_.tokenizer_memory),
            models::hash_all(source), std::move(compute)};
  });
  return models_.emplace(folder, std::move(made)).first->second;
}

std::string Decoding::encoder_of(const Json& latents) const {
  return job_.encoder.empty() ? get_string(latents, "encoder").value_or(output_.encoder())
                              : output_.encoder();
}

int Decoding::quality_of(const Json& latents, const std::string& where) const {
  if (job_.quality) return *job_.quality;
  const std::int64_t quality = need_integer(latents, "quality", where);
  if (quality < 0 || quality > 51) fail("'quality' of {} is {}: must be 0 to 51", where, quality);
  return static_cast<int>(quality);
}

/// Where ranks would have nothing to do, or one has not the memory, they decode it together.
bool Decoding::to_be_shared(const Model& with, const Latent& latent) const {
  if (ranks_.size() == 1 || !with.tokenizer->shares_decoding()) return false;
  if (few_) return true;
  try {
    with.tokenizer->check_memory(false, latent.frames, latent.height, latent.width, 1);
    return false;
  } catch (const Error&) {
    return true;
  }
}

void Decoding::decode(DecodedLatents& result) {
  const Json latents = latents_record(result.input.record);
  const std::string& where = result.input.where;
  const std::string path = need_string(latents, "path", where);
  const std::string address = need_string(latents, "address", where);
  result.name = need_string(latents, "name", where);
  check_clip_name(result.name);
  Json facts = latent_facts(latents);
  if (hash_hex(dump_json(facts)) != address)
    fail("the record was changed: its address does not fit its other fields");
  if (!output_.to_stream())
    facts.update({{"encoder", encoder_of(latents)}, {"quality", quality_of(latents, where)}});
  const std::string folder = job_.model.empty() ? need_string(latents, "model", where) : job_.model;
  if (!io::path_exists(folder))
    fail_as(Cause::open, "no such model folder: '{}'; if it has moved, name it with --model",
            folder);
  // Where nothing is said it was decoded where the latent was made, or by a tokenizer of the
  // program itself, which makes the same bits on both.
  if (device_name(job_.device) != get_string(latents, "device").value_or("cpu") &&
      !models::is_builtin_tokenizer(model(folder).tokenizer->name()))
    facts["decoded_on"] = device_name(job_.device);
  if (job_.compute && !model(folder).compute.empty()) facts["decoded_in"] = model(folder).compute;
  Json& record = result.record;
  record = {{"kind", "clip"}, {"path", output_.path_of(result.name, ".mp4")}};
  record.update(facts);
  for (const auto& [key, value] : latents.items())
    if (!record.contains(key) && key != "bytes" && key != "xxh3") record[key] = value;
  record["address"] = hash_hex(dump_json(facts));
  if (!output_.to_stream()) {
    output_.add_coded_size(record);
    if (!job_.force && output_.is_there(record, result.name)) return;
  }
  const std::string name = io::base_name(path);
  if (!name.ends_with(kLatentsExtension)) fail("'{}' does not end in {}", path, kLatentsExtension);
  result.latent =
      read_latent(io::dir_name(path),
                  name.substr(0, name.size() - std::string(kLatentsExtension).size()), address);
  const Model& with = model(folder);
  if (const std::string made_by = need_string(latents, "model_hash", where); made_by != with.hash)
    fail("the latents were made by another model than '{}' (model_hash {}, this one's is {})",
         folder, made_by, with.hash);
  if (to_be_shared(with, result.latent)) {
    check_clip(SharedTokenizer(*with.tokenizer, ranks_, {}), result.latent, record);
    result.together = true;
    result.folder = folder;
    return;
  }
  check_clip(*with.tokenizer, result.latent, record);
  result.tokenizer = with.tokenizer.get();
  if (!output_.to_stream()) result.mp4 = output_.encode(*result.tokenizer, result.latent, record);
}

DecodedLatents Decoding::make(DealtLatents& input) {
  DecodedLatents result;
  result.input = std::move(input);
  result.error = result.input.error;
  if (!result.error.empty()) return result;
  const auto begin = std::chrono::steady_clock::now();
  result.error = failure_of([&] { decode(result); }, &result.cause);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void Decoding::hand_over(DecodedLatents& result) {
  if (result.error.empty() && !names_.insert(result.name).second)
    result.error = "the name '" + result.name + "' is taken by other latents of this run";
  if (result.error.empty() && output_.to_stream())
    result.error = output_.stream(*result.tokenizer, result.latent, result.record);
  if (!result.error.empty()) {
    output_.add_error({result.input.where, result.error, result.cause});
    return;
  }
  if (!output_.to_stream()) {
    // Only here is it known that no latents before these made a clip of the name.
    const bool made = !result.mp4.empty();
    const Json extra = Json::object();
    if (auto claim = output_.claim(result.record, result.name, made && job_.force, extra)) {
      if (!made) fail("'{}' was changed; run the command again", result.name);
      output_.keep(*std::move(claim), result.mp4, result.record, result.name, extra);
    }
    output_.report(result.record, made ? std::optional(result.seconds) : std::nullopt);
  }
  progress_.add();
}

/// A collective: every rank has read the folder, or all throw.
const models::VideoTokenizer& Decoding::tokenizer_of_all(const std::string& folder) {
  const models::VideoTokenizer* found = nullptr;
  const dist::Verdict verdict =
      dist::attempt_on_all_ranks(world_, [&] { found = model(folder).tokenizer.get(); });
  if (verdict.failure) std::rethrow_exception(verdict.failure);
  if (verdict.rank >= 0) fail("rank {} cannot read the model '{}'", verdict.rank, folder);
  return *found;
}

/// Of rank 0, while the others serve_shared().
void Decoding::have_shared(DecodedLatents& result) {
  const auto begin = std::chrono::steady_clock::now();
  result.error = failure_of([&] {
    const auto call = [&](std::span<const float> values, int frames, int height, int width) {
      const std::vector<float> latents(values.begin(), values.end());
      dist::broadcast_bytes(ranks_, pack(result.folder, latents, frames, height, width), 0);
      tokenizer_of_all(result.folder);
    };
    const SharedTokenizer all(*model(result.folder).tokenizer, ranks_, call);
    result.mp4 = output_.encode(all, result.latent, result.record);
  });
  result.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Decoding::serve_shared() {
  for (;;) {
    const std::string bytes = dist::broadcast_bytes(ranks_, "", 0);
    if (bytes.empty()) return;
    std::string folder;
    std::vector<float> latents;
    int frames = 0, height = 0, width = 0;
    unpack(bytes, folder, latents, frames, height, width);
    const models::VideoTokenizer* tokenizer = nullptr;
    // What is wrong with it rank 0 says.
    if (!failure_of([&] { tokenizer = &tokenizer_of_all(folder); }).empty()) continue;
    tokenizer->decode_together(ranks_, latents, frames, height, width,
                               [](std::span<const float>, int) {});
  }
}

/// Rank 0 deals some lines to each rank in turn, and gets the clips back. So it has no more of them
/// than a round has.
void Decoding::decode_in_rounds(share::Slots& slots) {
  const auto size = static_cast<std::size_t>(ranks_.size());
  for (bool more = true; more;) {
    std::vector<std::vector<DealtLatents>> dealt(size);
    std::vector<DealtLatents> own;
    if (reader_) {
      std::size_t count = 0;
      for (; more && count < size * static_cast<std::size_t>(slots.threads()); ++count) {
        std::optional<DealtLatents> input = next();
        more = input.has_value();
        if (!more) break;
        dealt[count % size].push_back(*std::move(input));
      }
      few_ = count < size;
      for (int rank = 1; rank < ranks_.size(); ++rank)
        dist::send_bytes(ranks_, rank, pack(dealt[static_cast<std::size_t>(rank)], more, few_));
      own = dealt[0];
    } else {
      unpack(dist::receive_bytes(ranks_, 0), own, more, few_);
    }
    std::vector<std::vector<DecodedLatents>> made(size);
    std::size_t taken = 0;
    share::for_each_ordered<DealtLatents, DecodedLatents>(
        slots,
        [&]() -> std::optional<DealtLatents> {
          if (taken == own.size()) return std::nullopt;
          return std::move(own[taken++]);
        },
        [this](DealtLatents& input) { return make(input); },
        [&](DecodedLatents& result) { made[0].push_back(std::move(result)); });
    if (!reader_) {
      dist::send_bytes(ranks_, 0, pack(made[0]));
      serve_shared();
      continue;
    }
    for (std::size_t rank = 1; rank < size; ++rank) {
      unpack(dist::receive_bytes(ranks_, static_cast<int>(rank)), made[rank]);
      for (std::size_t i = 0; i < made[rank].size(); ++i)
        made[rank][i].input = std::move(dealt[rank].at(i));
    }
    for (std::size_t i = 0; i < size * made[0].size(); ++i) {
      if (i / size >= made[i % size].size()) continue;
      DecodedLatents& result = made[i % size][i / size];
      if (result.together) have_shared(result);
      hand_over(result);
    }
    dist::broadcast_bytes(ranks_, "", 0);  // no more of this round
  }
}

}  // namespace

long decode_latents(const DecodeJob& job, dist::World& world, share::Slots& slots,
                    Progress& progress, io::ManifestWriter& manifest) {
  std::vector<int> all;
  for (int rank = 0; rank < world.size(); ++rank)
    all.push_back(rank);
  const std::unique_ptr<dist::Group> ranks = world.group("all", std::move(all));
  std::optional<Decoding> decoding;
  dist::on_all_ranks(world, [&] {
    if (world.size() > 1 && job.output == "-")
      fail_usage(
          "a stream (-o -) is written by one process: start vfm-generate decode without mpirun");
    decoding.emplace(job, world, *ranks, progress, manifest);
  });
  return decoding->run(slots);
}

}  // namespace vfm::generate
