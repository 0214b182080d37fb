// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/one_thread.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/first_names.h"
#include "io/manifest.h"
#include "models/tokenizer_family.h"
#include "pack/feed.h"
#include "pack/folder.h"
#include "pack/notes.h"
#include "pack/report.h"
#include "pack/sample.h"
#include "pack/shard_parts.h"
#include "parts/part_inputs.h"
#include "report/html.h"
#include "shard/receipt.h"
#include "shard/writer.h"
#include "share/ordered.h"
#include "tensor/failure.h"
#include "workers/tokenizers.h"

namespace vfm::pack {
namespace {

Json settings_of(const PackOptions& options, const models::VideoTokenizer& tokenizer) {
  const data::PixelOptions& clip = options.clip;
  const bool random = clip.crop == data::CropMode::random;
  Json fps;
  if (clip.fps.num > 0) fps = fmt::format("{}/{}", clip.fps.num, clip.fps.den);
  Json settings = {{"version", 1},
                   {"tokenizer", tokenizer.config().to_json()},
                   {"size", clip.size},
                   {"frames", clip.frames},
                   {"windows", clip.windows == 0 ? Json("all") : Json(clip.windows)},
                   {"overlap", clip.overlap},
                   {"fps", fps},
                   {"crop", random ? "random" : "centre"},
                   {"seed", random ? Json(clip.seed) : Json()}};
  // Built-in tokenizers give the same bits on the CPU and the GPU.
  if (options.device == Device::cuda && !models::is_builtin_tokenizer(tokenizer.name()))
    settings["device"] = "cuda";
  return settings;
}

/// parts::RunTerms::options.
std::map<std::string, std::string> option_names() {
  return {{"tokenizer", "--tokenizer"},
          {"tokenizer.compute", "--compute"},
          {"tokenizer.channels", "--channels"},
          {"tokenizer.time_factor", "--time-factor"},
          {"tokenizer.space_factor", "--space-factor"},
          {"size", "--size"},
          {"frames", "--frames"},
          {"windows", "--windows"},
          {"overlap", "--overlap"},
          {"fps", "--fps"},
          {"crop", "--crop"},
          {"seed", "--seed"},
          {"device", "--device"}};
}

struct Outcome {
  PackWork work;
  ClipLatents latents;
  std::string failure;
  Cause cause = Cause::other;
};

std::size_t outcome_weight(const Outcome& outcome) {
  const PackWork& work = outcome.work;
  std::size_t bytes = held_bytes(work.errors) + held_bytes(work.faults) + outcome.failure.size();
  if (work.begin && work.shard) bytes += held_bytes(work.shard->record);
  for (const LatentOutput& latent : outcome.latents.windows)
    bytes += sizeof latent + held_bytes(latent);
  return bytes;
}

void tell_frames(const data::FrameCount& frames) {
  std::string why;
  for (const auto& [count, cause] :
       {std::pair(frames.rate, "are between those that --fps takes"),
        {frames.windows, "are in windows that --windows does not take"},
        {frames.remainder, "are left at the ends of clips, too few for a window"}})
    if (count > 0) why += fmt::format("; {} {}", count, cause);
  log_info("of {} frames {} became latents{}", frames.read, frames.latents, why);
}

/// One run of vfm-pack. take() writes shards, notes and records in the order of the input.
class Run {
 public:
  Run(const PackOptions& options, share::Slots& slots, Progress& progress,
      io::ManifestWriter& manifest)
      : options_(options),
        slots_(slots),
        progress_(progress),
        tokenizer_(open_tokenizer()),
        settings_(settings_of(options, *tokenizer_)),
        clip_(options.clip),
        manifest_(manifest) {
    clip_.time_step = tokenizer_->time_factor();
    clip_.multiple = 2 * tokenizer_->space_factor();  // patches of 2 x 2 latent pixels
    const int side = std::max(2, options.clip.size / clip_.multiple * 2);
    tokenizer_->check_memory(true, 1 + (clip_.frames - 1) / clip_.time_step, side, side, 1);
    open_encoder();
  }

  long run() { return options_.parts ? run_parts() : run_whole(); }

 private:
  long run_whole() {
    const auto finished = [this](const ClipShard& shard) { return find_finished(shard); };
    std::optional<PackFeed> feed(std::in_place, options_.inputs, options_.limits, finished);
    folder_.emplace(options_.output, settings_, tokenizer_->channels(), options_.force);
    errors_.emplace(io::join_path(options_.output, "errors.jsonl"), "vfm-pack");
    if (!options_.report.empty()) clip_tars_.emplace();
    progress_.start("samples", 0);
    pack(*feed, options_.output);
    if (options_.workers && options_.report.empty()) options_.workers->finished();
    errors_->finish();
    check_whole(feed->streams());
    if (!any_shard_ && errors_->count() == 0)
      fail("the input has no shard; vfm-shard makes shards of clips");
    feed.reset();
    keys_.reset();
    folder_->finish(latent_tokenizer(*tokenizer_));
    tell_frames(folder_->frames());
    manifest_.tell("frames", to_json(folder_->frames()));
    if (const auto count = folder_->without_text(); count > 0)
      log_warning(
          "{} will be trained without text, as they have no embeddings; vfm-embed makes them",
          counted(static_cast<std::int64_t>(count), "sample"));
    if (clip_tars_)
      write_pack_report({options_.output, options_.report, clip_}, *tokenizer_, *clip_tars_);
    return static_cast<long>(errors_->count());
  }

  void pack(PackFeed& feed, const std::string& scratch) {
    scratch_ = scratch;
    parts_.emplace(*folder_);
    keys_.emplace(scratch);
    share::for_each_ordered<PackWork, Outcome>(
        slots_, [&] { return feed.next(); }, [this](PackWork& work) { return work_on(work); },
        [this](Outcome& outcome) { take(outcome); },
        [this](const Outcome& outcome) { return outcome_weight(outcome) + kept_for(outcome); });
  }

  long run_parts() {
    // Latents that were made without parts. Those of parts have their settings in run.json.
    if (!parts::read_run_file(options_.output, "pack"))
      PackFolder::check_settings(options_.output, settings_);
    progress_.start("samples", 0);
    shard::PartSteps steps;
    steps.terms.reads = {"caption", "embed", "score"};
    steps.terms.settings = settings_;
    steps.terms.options = option_names();
    steps.without_later = true;  // a key is in one shard of latents
    steps.digest_of = [this](int part, int parts) { return digest(part, parts); };
    steps.make = [this](const parts::Part& part, const shard::PartShards& shards,
                        shard::PartOutput& output) { return make_part(part, shards, output); };
    const long failed = shard::for_each_part(*options_.parts, manifest_, steps);
    if (options_.workers) options_.workers->finished();
    return failed;
  }

  io::InputStreams make_part(const parts::Part& part, const shard::PartShards& shards,
                             shard::PartOutput& output) {
    if (!folder_)
      folder_.emplace(options_.output, settings_, tokenizer_->channels(), false,
                      PackFolder::Use::part);
    io::write_file(part.path(kTokenizerFile),
                   dump_json_pretty(latent_tokenizer(*tokenizer_).to_json()));
    const auto finished = [this](const ClipShard& shard) { return find_finished(shard); };
    PackFeed feed(options_.inputs, options_.limits, finished, &shards);
    output_ = &output;
    pack(feed, part.folder());
    keys_.reset();
    output_ = nullptr;
    return feed.streams();
  }

  /// Returns the digest of a part: of the settings, and of the tars of its shards. Reads those of
  /// all parts at once.
  std::string digest(int part, int parts) {
    if (!digests_.empty()) return digests_[part];
    const std::optional<int> only = options_.parts->choice.part;
    const auto add = [&](const ClipShard& shard) {
      const int number = parts::part_of_shard(shard.path, parts);
      if (!only || number == *only) {
        std::string& text = digests_[number];
        text = hash_hex(text + shard.name + dump_json(made_from(shard)));
      }
      return std::vector<std::string>{shard.split};  // its samples are not read
    };
    PackFeed feed(options_.inputs, options_.limits, add);
    while (feed.next()) {
    }
    digests_[-1];  // read, though no shard may have come
    return digests_[part];
  }

  std::unique_ptr<models::VideoTokenizer> open_tokenizer() {
    if (!options_.workers)
      return models::make_tokenizer(options_.tokenizer, options_.device, options_.tokenizer_memory);
    // The factor is not known yet. Tokenizers from folders have a factor of at least 8.
    const int side = std::max(2, options_.clip.size / 8);
    const workers::TokenizerPlan plan{options_.tokenizer, options_.tokenizer_memory,
                                      1 + (options_.clip.frames - 1) / 4, side, side};
    workers::Parcel open = workers::tokenizer_parcel(plan);
    open.words["hwaccel"] = options_.hwaccel;
    service_ = options_.workers->add(kClips, std::move(open),
                                     workers::tokenizer_bytes(plan, options_.device));
    if (options_.hwaccel != "none") options_.workers->add_sessions(share::GpuKind::decode);
    return workers::tokenizer_in_workers(*options_.workers, service_);
  }

  void open_encoder() {
    if (options_.workers && options_.hwaccel != "none" &&
        workers_decode(*options_.workers, service_)) {
      encoder_ = make_clip_encoder(*options_.workers, service_, clip_);
      return;
    }
    // Pictures travel to a worker as bytes, a quarter of their size as floats. A GPU that decodes
    // also scales pictures to bytes.
    if (options_.workers)
      scales_.emplace(Device::cpu, false);
    else if (options_.device == Device::cuda && clip_.hardware)
      scales_.emplace(Device::cuda);
    encoder_ = make_clip_encoder(*tokenizer_, clip_, scales_ ? &*scales_ : nullptr);
  }

  /// Throws Error if the input broke off, before latents.json makes the folder usable.
  void check_whole(const io::InputStreams& input) const {
    const std::string why = input.broken_off();
    if (!why.empty()) report::write_not_complete(options_.report, "Latents", options_.output, why);
    input.check_whole("latents.json is not written; the shards that are made are kept");
  }

  Json made_from(const ClipShard& shard) const {
    Json from = {{"settings", settings_},
                 {"split", shard.split_given ? Json(shard.split) : Json()},
                 {"sources", sources_of(shard)}};
    if (const auto hashes = shard.record->find("duplicate_hashes"); hashes != shard.record->end())
      from["duplicate_hashes"] = *hashes;
    return from;
  }

  /// Finds what an earlier run made of the shard, and keeps it for take(). Runs on the thread that
  /// reads the input.
  std::vector<std::string> find_finished(const ClipShard& shard) {
    Begun begun;
    begun.made_from = made_from(shard);
    std::vector<std::string> splits;
    for (const auto& [split, notes] :
         folder_->find_finished(shard.name, shard.split, begun.made_from, options_.limits)) {
      splits.push_back(split);
      begun.finished.emplace(split, FinishedPart(notes));
    }
    const auto passes = [](const io::Fault& fault) { return may_pass(fault.cause); };
    if (output_ && std::ranges::any_of(begun.finished, [&](const auto& each) {
          return std::ranges::any_of(each.second.errors, passes);
        })) {
      splits.clear();
      begun.finished.clear();
    }
    const std::lock_guard lock(mutex_);
    begun_[&shard] = std::move(begun);
    total_ += static_cast<std::uint64_t>(get_integer(shard.record, "samples").value_or(0));
    progress_.set_total(total_);
    return splits;
  }

  /// Returns the weight of what find_finished() keeps: several times its bytes, so that few
  /// finished shards wait. They come faster than take() adds their keys.
  std::size_t kept_for(const Outcome& outcome) {
    constexpr std::size_t kWeight = 8;
    std::size_t bytes = 0;
    const std::lock_guard lock(mutex_);
    if (const auto found = begun_.find(outcome.work.shard.get());
        outcome.work.begin && found != begun_.end())
      for (const auto& [split, part] : found->second.finished)
        bytes += sizeof part + held_bytes(part);
    return kWeight * bytes;
  }

  Outcome work_on(PackWork& work) const {
    check_stop();
    Outcome out;
    out.failure = work.refusal;
    if (work.sample) {
      if (out.failure.empty())
        out.failure = failure_of(
            [&] {
              const OneThread one_thread;
              out.latents = make_latents(*work.sample, *tokenizer_, *encoder_);
            },
            &out.cause);
      for (shard::Member& member : work.sample->members)
        member.data = {};  // only the key is needed from here on
    }
    out.work = std::move(work);
    return out;
  }

  void take(Outcome& outcome) {
    const PackWork& work = outcome.work;
    for (const io::Fault& fault : work.errors)
      if (work.shard && !work.begin)
        note_error(fault);  // of the rest of this shard
      else
        // These errors are of whole shards, which another program has just written.
        tell(fault, fault.cause == Cause::open);
    if (!work.shard) return;
    if (work.begin) start(*work.shard);
    if (work.sample) {
      add(*work.shard, work.sample->key, outcome);
      progress_.add();
    }
    if (work.end) finish(*work.shard, work);
  }

  void tell(const io::Fault& fault, bool of_machine = false) {
    if (output_)
      output_->fault(fault, of_machine);
    else
      errors_->add(fault);
  }

  void start(const ClipShard& shard) {
    if (output_) {
      // What a part refuses must not depend on its other shards.
      keys_.emplace(scratch_);
      text_encoder_ = {};
    }
    {
      const std::lock_guard lock(mutex_);
      auto found = begun_.find(&shard);
      shard_ = std::move(found->second);
      begun_.erase(found);
    }
    if (!shard_.finished.empty()) folder_->goes_on();
    for (const auto& [split, part] : shard_.finished) {
      log_info("'{}' is there already", tar_of(split, shard));
      std::size_t begin = 0;
      for (const std::size_t end : part.key_ends) {
        keys_->put(part.keys.substr(begin, end - begin), {});
        begin = end;
      }
      if (text_encoder_.is_null()) text_encoder_ = part.text_encoder;
      for (const io::Fault& fault : part.errors)
        tell(fault);
      progress_.add(part.facts.clips + part.errors.size());
    }
  }

  void note_error(const io::Fault& fault) {
    shard_.errors.push_back(fault);
    tell(fault);
  }

  void add(const ClipShard& shard, const std::string& key, Outcome& outcome) {
    const auto refuse = [&](const std::string& message, Cause cause = Cause::other) {
      note_error({shard::sample_name(key, shard.path), message, cause});
    };
    std::vector<LatentOutput>& windows = outcome.latents.windows;
    if (windows.empty()) return refuse(outcome.failure, outcome.cause);
    const Json& text_encoder = windows.front().text_encoder;
    if (!text_encoder.is_null() && !text_encoder_.is_null() &&
        encoder_identity(text_encoder) != encoder_identity(text_encoder_))
      return refuse(fmt::format("its text encoder {} is not that of the samples before, {}",
                                dump_json(text_encoder), dump_json(text_encoder_)));
    for (const LatentOutput& window : windows)
      if (keys_->find(window.entry.key))
        return refuse("its key was there before", Cause::duplicate);
    try {
      for (const LatentOutput& window : windows)
        shard::check_sample(shard::view_of(window.sample));
    } catch (const Error& error) {
      return refuse(error.what(), error.cause());
    }
    for (const LatentOutput& window : windows)
      keys_->put(window.entry.key, {});
    if (text_encoder_.is_null()) text_encoder_ = text_encoder;
    parts_->add(shard, outcome.work.split, outcome.latents);
  }

  void finish(const ClipShard& shard, const PackWork& work) {
    const bool made = shard_.finished.empty();
    for (const io::Fault& fault : work.faults)
      note_error(fault);
    std::map<std::string, FinishedPart> finished;
    if (made)
      finished =
          parts_->write(shard, shard_.made_from, std::move(shard_.errors),
                        work.any_refused ? std::optional(options_.limits.member) : std::nullopt);
    else
      finished = std::move(shard_.finished);
    for (const auto& [split, part] : finished) {
      const std::string tar = tar_of(split, shard);
      if (output_) output_->wrote_file(shard::receipt_path(tar));
      if (!part.record->is_null()) {
        if (output_) output_->wrote(tar, part.record);
        Json record = {{"kind", "shard"}, {"path", tar}, {"split", split}};
        for (const auto& [name, value] : part.record->items())
          if (name != "kind") record[name] = value;
        if (output_)
          output_->record(record);
        else
          manifest_.write(record);
      }
      any_shard_ = true;
      if (clip_tars_) clip_tars_->add(split, shard);
      folder_->add(split, shard.name, part.facts);
    }
    shard_ = {};
  }

  std::string tar_of(const std::string& split, const ClipShard& shard) const {
    return folder_->tar_path(split, shard.name);
  }

  struct Begun {
    Json made_from;
    std::map<std::string, FinishedPart> finished;  // by an earlier run
    std::vector<io::Fault> errors;                 // of this run
  };

  const PackOptions& options_;
  share::Slots& slots_;
  Progress& progress_;
  std::size_t service_ = 0;  // of the tokenizer, in the workers
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
  Json settings_;
  data::PixelOptions clip_;
  std::optional<GpuScales> scales_;
  std::unique_ptr<LatentEncoder> encoder_;
  std::optional<PackFolder> folder_;
  std::optional<io::ErrorLog> errors_;
  shard::PartOutput* output_ = nullptr;  // of the part that is made, in place of errors_
  std::map<int, std::string> digests_;   // of parts
  std::string scratch_;                  // folder for temporary files
  io::ManifestWriter& manifest_;

  std::mutex mutex_;  // guards begun_ and total_
  std::map<const ClipShard*, Begun> begun_;
  std::uint64_t total_ = 0;

  // The shard that take() writes, and facts of all shards so far.
  Begun shard_;
  std::optional<ShardParts> parts_;
  std::optional<io::FirstNames> keys_;  // of all samples
  Json text_encoder_;
  bool any_shard_ = false;
  std::optional<ClipTars> clip_tars_;  // for the report
};

}  // namespace

LatentTokenizer latent_tokenizer(const models::VideoTokenizer& tokenizer) {
  LatentTokenizer facts;
  facts.config = tokenizer.config().to_json();
  facts.channels = tokenizer.channels();
  facts.vocabulary = tokenizer.vocabulary();
  if (const auto own = tokenizer.statistics()) facts.statistics = own->to_json();
  return facts;
}

long run(const PackOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest) {
  return Run(options, slots, progress, manifest).run();
}

}  // namespace vfm::pack
