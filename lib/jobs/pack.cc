// SPDX-License-Identifier: Apache-2.0
#include "jobs/pack.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/one_thread.h"
#include "base/ordered.h"
#include "base/stop.h"
#include "io/file.h"
#include "io/manifest.h"
#include "jobs/failure.h"
#include "jobs/pack_feed.h"
#include "jobs/pack_folder.h"
#include "jobs/pack_report.h"
#include "jobs/pack_sample.h"
#include "models/text_encoder.h"
#include "models/tokenizer.h"
#include "shard/writer.h"

namespace vfm::jobs {
namespace {

Json settings_of(const PackOptions& options, const models::Tokenizer& tokenizer) {
  const data::ClipOptions& clip = options.clip;
  const bool random = clip.crop == data::CropMode::random;
  Json fps;
  if (clip.fps.num > 0) fps = fmt::format("{}/{}", clip.fps.num, clip.fps.den);
  Json settings = {{"version", 1},
                   {"tokenizer", tokenizer.config()},
                   {"size", clip.size},
                   {"frames", clip.frames},
                   {"fps", fps},
                   {"crop", random ? "random" : "centre"},
                   {"seed", random ? Json(clip.seed) : Json()}};
  // Those of the program itself give the same bits on both.
  if (options.device == Device::cuda && !tokenizer.name().starts_with("builtin:"))
    settings["device"] = "cuda";
  return settings;
}

/// Hashes of a shard's tars. The record's own word for its tar is taken if the size fits; it is
/// checked before the shard is read (check_shard_bytes).
Json sources_of(const ClipShard& shard) {
  Json sources = Json::array();
  for (const std::string& tar : shard.tars) {
    const std::uint64_t bytes = io::File::open_regular(tar).size();
    std::string hash;
    if (tar == shard.path && get_integer(shard.record, "bytes") == static_cast<std::int64_t>(bytes))
      hash = get_string(shard.record, "xxh3").value_or("");
    if (hash.empty()) hash = io::hash_file(tar);
    sources.push_back({{"bytes", bytes}, {"xxh3", hash}});
  }
  return sources;
}

/// Throws Error if no shard can hold the sample.
void check(const shard::Sample& sample) {
  shard::SampleView view{sample.key, {}};
  for (const shard::Member& member : sample.members)
    view.members.push_back({member.extension, member.data});
  shard::check_sample(view);
}

/// A sample after the work on it: its latent, or why there is none.
struct Outcome {
  PackWork work;
  std::optional<LatentOutput> latent;
  std::string failure;
};

/// The ordered side: writes shards, notes, records.
class Run {
 public:
  Run(const PackOptions& options, Slots& slots, Progress& progress)
      : options_(options),
        slots_(slots),
        progress_(progress),
        tokenizer_(models::make_tokenizer(options.tokenizer, options.device)),
        settings_(settings_of(options, *tokenizer_)),
        clip_(options.clip) {
    clip_.time_step = tokenizer_->time_factor();
    clip_.multiple = 2 * tokenizer_->space_factor();  // patches of 2 x 2 latent pixels
  }

  long run() {
    const auto wanted = [this](const ClipShard& shard) { return begin(shard); };
    PackFeed feed(options_.inputs, wanted);
    folder_.emplace(options_.output, settings_, tokenizer_->channels(), options_.force);
    errors_.emplace(io::join_path(options_.output, "errors.jsonl"), "vfm-pack");
    progress_.start("samples", 0);
    for_each_ordered<PackWork, Outcome>(
        slots_, [&] { return feed.next(); }, [this](PackWork& work) { return work_on(work); },
        [this](Outcome& outcome) { take(outcome); });
    errors_->finish();
    if (shards_.empty() && errors_->count() == 0)
      fail("there is no shard in the input; vfm-shard makes shards of clips");
    folder_->finish(*tokenizer_);
    if (const auto count = folder_->without_text(); count > 0)
      log_warning("{} samples have no text embedding and train without text; vfm-embed makes them",
                  count);
    if (!options_.report.empty())
      write_pack_report({options_.output, options_.report, clip_}, *tokenizer_, shards_);
    return static_cast<long>(errors_->count());
  }

 private:
  /// Whether the shard has to be made. On the thread that reads; what it finds is kept for take().
  bool begin(const ClipShard& shard) {
    const Json made_from = {{"settings", settings_}, {"sources", sources_of(shard)}};
    ShardNotes notes;
    const bool finished = folder_->find_finished(tar_of(shard), made_from, notes);
    if (!finished) {
      notes = {};
      notes.made_from = made_from;
    }
    const std::lock_guard lock(mutex_);
    begun_[&shard] = {std::move(notes), finished};
    total_ += static_cast<std::uint64_t>(get_integer(shard.record, "samples").value_or(0));
    progress_.set_total(total_);
    return !finished;
  }

  Outcome work_on(PackWork& work) const {
    check_stop();
    Outcome out;
    if (work.sample) {
      out.failure = failure_of([&] {
        const OneThread one_thread;
        out.latent = make_latent(*work.sample, *tokenizer_, clip_);
      });
      for (shard::Member& member : work.sample->members)
        member.data = {};  // only the key is needed from here on
    }
    out.work = std::move(work);
    return out;
  }

  void take(Outcome& outcome) {
    const PackWork& work = outcome.work;
    for (const auto& [input, message] : work.errors)
      errors_->add(input, message);
    if (!work.shard) return;
    if (work.begin) start(work.shard);
    if (work.sample) {
      add(*work.shard, work.sample->key, outcome);
      progress_.add();
    }
    if (work.end) finish(*work.shard, work.damage);
  }

  void start(const std::shared_ptr<const ClipShard>& shard) {
    {
      const std::lock_guard lock(mutex_);
      auto found = begun_.find(shard.get());
      std::tie(notes_, finished_) = std::move(found->second);
      begun_.erase(found);
    }
    if (!finished_) {
      folder_->begin_shard(tar_of(*shard));
      return;
    }
    log_info("'{}' is there already", tar_of(*shard));
    for (const data::Entry& entry : notes_.entries)
      keys_.insert(entry.key);
    if (text_encoder_.is_null()) text_encoder_ = notes_.text_encoder;
    for (const auto& [input, message] : notes_.errors)
      errors_->add(input, message);
    progress_.add(notes_.entries.size() + notes_.errors.size());
  }

  void add(const ClipShard& shard, const std::string& key, Outcome& outcome) {
    const auto refuse = [&](const std::string& message) {
      notes_.errors.emplace_back(fmt::format("{} of '{}'", key, shard.path), message);
      errors_->add(notes_.errors.back().first, message);
    };
    if (!outcome.latent) return refuse(outcome.failure);
    LatentOutput& latent = *outcome.latent;
    if (!latent.text_encoder.is_null() && !text_encoder_.is_null() &&
        models::encoder_identity(latent.text_encoder) != models::encoder_identity(text_encoder_))
      return refuse(fmt::format("its text encoder {} is not that of the samples before, {}",
                                dump_json(latent.text_encoder), dump_json(text_encoder_)));
    if (keys_.contains(key)) return refuse("its key was there before");
    try {
      check(latent.sample);
    } catch (const Error& error) {
      return refuse(error.what());
    }
    keys_.insert(key);
    if (!writer_) writer_.emplace(tar_of(shard));
    writer_->add(latent.sample);
    latent.entry.shard = shard.name;
    latent.entry.row = writer_->samples() - 1;
    notes_.entries.push_back(latent.entry);
    notes_.sums.add(latent.sums);
    if (latent.text_encoder.is_null())
      ++notes_.without_text;
    else if (notes_.text_encoder.is_null())
      notes_.text_encoder = text_encoder_ = latent.text_encoder;
  }

  void finish(const ClipShard& shard, const std::string& damage) {
    if (!finished_) {
      if (!damage.empty()) {
        notes_.errors.emplace_back(shard.path, damage);
        errors_->add(shard.path, damage);
      }
      if (writer_) {
        notes_.record = writer_->finish();
        notes_.record.erase("path");  // the folder may be moved
        writer_.reset();
      }
      folder_->write_notes(tar_of(shard), notes_);
    }
    if (!notes_.record.is_null()) {
      Json record = {{"kind", "shard"}, {"path", tar_of(shard)}, {"split", shard.split}};
      for (const auto& [name, value] : notes_.record.items())
        if (name != "kind") record[name] = value;
      manifest_.write(record);
    }
    shards_.push_back(shard);
    folder_->add(shard.split, shard.name, std::move(notes_));
    notes_ = {};
  }

  std::string tar_of(const ClipShard& shard) const {
    return io::join_path(io::join_path(options_.output, shard.split), shard.name);
  }

  const PackOptions& options_;
  Slots& slots_;
  Progress& progress_;
  std::unique_ptr<models::Tokenizer> tokenizer_;
  Json settings_;
  data::ClipOptions clip_;
  std::optional<PackFolder> folder_;
  std::optional<io::ErrorLog> errors_;
  io::ManifestWriter manifest_;

  std::mutex mutex_;  // guards begun_ and total_
  std::map<const ClipShard*, std::pair<ShardNotes, bool>> begun_;
  std::uint64_t total_ = 0;

  // The shard being written, and what all before it had.
  ShardNotes notes_;
  bool finished_ = false;  // by an earlier run
  std::optional<shard::Writer> writer_;
  std::unordered_set<std::string> keys_;
  Json text_encoder_;
  std::vector<ClipShard> shards_;
};

}  // namespace

long run_pack(const PackOptions& options, Slots& slots, Progress& progress) {
  return Run(options, slots, progress).run();
}

}  // namespace vfm::jobs
