// SPDX-License-Identifier: Apache-2.0
#include "clip/clip.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "clip/clip_report.h"
#include "clip/cut/crew.h"
#include "clip/cut/given_cutter.h"
#include "clip/cut/images.h"
#include "clip/cut/shot_cutter.h"
#include "clip/source.h"
#include "clip/store/clip_output.h"
#include "clip/store/joined.h"
#include "clip/store/leftovers.h"
#include "clip/store/listed.h"
#include "clip/store/store.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "io/remote/address.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder.h"
#include "shard/input_totals.h"
#include "share/ordered.h"

namespace vfm::clip {
namespace {

struct Outcome {
  std::vector<Json> records;
  std::vector<io::Fault> errors;
  std::string remark;   // a warning, which does not count as an error
  std::string account;  // message for -v
  std::size_t sources = 1;
  std::int64_t clips = 0;
  std::string json;                         // json of the finished source, for ClipReport
  std::shared_ptr<Joined> batch = nullptr;  // batch that ends with this item
};

/// A waiting batch holds open files and a lock. Its weight lets about sixteen batches wait.
std::size_t outcome_weight(const Outcome& outcome) {
  constexpr std::size_t kBatch = share::kOrderedBytes / 16;
  return held_bytes(outcome.records) + held_bytes(outcome.errors) + outcome.remark.size() +
         outcome.account.size() + outcome.json.size() + (outcome.batch ? kBatch : 0);
}

class ClipJob {
 public:
  ClipJob(const ClipOptions& options, int threads, Crew& crew, Progress& progress)
      : options_(options),
        threads_(threads),
        crew_(crew),
        progress_(progress),
        settings_(clip_settings(options)) {}

  const Json& settings() const { return settings_; }

  Outcome video(const JoinedItems::Work& work) {
    if (work.batch) return part(work);
    const ClipSource& source = work.item.sources[0];
    const Stopwatch watch;
    Outcome outcome;
    try {
      const Json settings = settings_of(source);
      const StorePlace place = store_place(options_, work.item, settings);
      const auto made = open_store(options_, place, settings);
      ClipStore& store = *made;
      Json finished = with_outputs(options_, [&] { return store.find_or_hold(options_.force); });
      const bool there = !finished.is_null();
      if (!there) {
        OutputSink sink(options_, store);
        finished = cut(source, sink, !options_.force);
      }
      report(finished, source, place.directory, outcome);
      const bool shots = !options_.recipe.given && options_.recipe.stride <= 0;
      outcome.account = fmt::format(
          "'{}': {}{} clips, {} of video{}", source.path,
          shots ? fmt::format("{} shots, ", finished.at("cuts").size() + 1) : std::string(),
          outcome.clips, format_seconds(finished.value("seconds", 0.0)),
          there ? std::string(", there already") : " in " + watch.text());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      outcome.errors.push_back(fault_of(source, error));
    }
    return outcome;
  }

  Outcome other(const JoinedItems::Work& work) {
    const ClipItem& item = work.item;
    switch (item.kind) {
      case ClipItem::Kind::joined:  // the batch needs no work
        return {.sources = work.there, .batch = work.batch};
      case ClipItem::Kind::images:
        return images(item);
      case ClipItem::Kind::passed:
        return {.records = {item.sources[0].record}, .sources = 0};
      case ClipItem::Kind::duplicate:
        return {.remark = fmt::format("'{}' {}; skipped", item.input, item.message)};
      default:  // bad
        return {.errors = {{item.input, item.message, item.cause}}};
    }
  }

  void finish(Outcome& outcome) {
    Joined& batch = *outcome.batch;
    if (options_.part) outcome.errors = batch.faults_of_machine();
    if (!outcome.errors.empty()) return outcome.batch.reset();
    try {
      report(batch.finish(), {}, batch.directory(), outcome);
      ClipStore::name_sources(outcome.records, batch.sources());
      log_info("'{}': {} clips of {} videos", batch.name(), outcome.clips, batch.size());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      outcome.errors.emplace_back(batch.source(0).path, error);
      // In a part, what fails a whole batch is no result of its videos.
      if (options_.part) outcome.errors.back().cause = Cause::disk;
    }
    outcome.batch.reset();
  }

 private:
  Outcome part(const JoinedItems::Work& work) {
    const ClipSource& source = work.item.sources[0];
    const bool copied =
        work.batch->make(work.place, [&](ClipSink& sink) { cut(source, sink, false); });
    return {.account = fmt::format("'{}': {} '{}'", source.path,
                                   copied ? "copied into" : "cut, for", work.batch->name()),
            .sources = 1 + work.there,
            .batch = work.last ? work.batch : nullptr};
  }

  /// Returns true if a picture that failed may succeed now.
  static bool may_do_better(const Json& finished) {
    const std::vector<io::Fault> faults = ClipStore::faults(finished, "");
    return std::any_of(faults.begin(), faults.end(),
                       [](const io::Fault& fault) { return may_pass(fault.cause); });
  }

  Outcome images(const ClipItem& item) {
    Outcome outcome;
    outcome.sources = item.sources.size();
    try {
      const StorePlace place = store_place(options_, item, settings_);
      const auto made = open_store(options_, place, settings_);
      ClipStore& store = *made;
      Json finished = store.find_or_hold(options_.force);
      if (!finished.is_null() && may_do_better(finished)) finished = store.find_or_hold(true);
      if (finished.is_null()) {
        store.begin(false);
        std::vector<io::Fault> errors;
        for (const ClipSource& source : item.sources) {
          check_stop();
          try {
            store.add(image_sample(source.path, source.hash, options_.readable_names));
          } catch (const ImageError& error) {
            errors.push_back(fault_of(source, error, Cause::decode));
            if (options_.part && is_of_machine(errors.back())) {
              outcome.errors = {errors.back()};
              return outcome;
            }
          }
        }
        finished = store.finish({{"kind", "images"}, {"errors", io::to_json(errors)}});
      }
      report(finished, {}, place.directory, outcome);
      ClipStore::name_sources(outcome.records, item.sources);
    } catch (const Error& error) {
      outcome.errors.emplace_back(item.sources[0].path, error);
      if (options_.part) outcome.errors.back().cause = Cause::disk;
    }
    return outcome;
  }

  io::Fault fault_of(const ClipSource& source, const Error& error,
                     Cause otherwise = Cause::other) const {
    io::Fault fault(source.path, error, otherwise);
    return options_.part ? settled(options_.part->judged(std::move(fault))) : fault;
  }

  Json settings_of(const ClipSource& source) const {
    Json settings = settings_;
    if (source.spans) settings["spans"] = hash_of_spans(source);
    return settings;
  }

  /// If `keep` is true, uses the clips of a killed run. If these clips do not fit the video, cuts
  /// all clips again.
  Json cut(const ClipSource& source, ClipSink& sink, bool keep) const {
    for (;; keep = false) {
      ClipOutput output(source, options_, sink);
      const auto cutter = cutter_of(source, output);
      output.begin(keep);
      cut(*cutter);
      if (Json finished = output.finish(cutter->summary()); !finished.is_null()) return finished;
    }
  }

  std::unique_ptr<ClipCutter> cutter_of(const ClipSource& source, ClipOutput& output) const {
    if (source.spans)
      return std::make_unique<SpanCutter>(source, options_, threads_, crew_, progress_, output);
    if (options_.recipe.stride > 0)
      return std::make_unique<StrideCutter>(source, options_, threads_, crew_, progress_, output);
    return std::make_unique<ShotCutter>(source, options_, threads_, crew_, progress_, output);
  }

  static void cut(ClipCutter& cutter) {
    try {
      cutter.cut();
    } catch (const Error&) {
      cutter.settle();
      throw;
    }
    cutter.settle();
  }

  void report(const Json& finished, const ClipSource& source, const std::string& directory,
              Outcome& outcome) const {
    outcome.clips = need_integer(finished, "clips", "the clip index");
    outcome.records = ClipStore::records(finished, directory);
    for (Json& record : outcome.records) {
      if (!source.path.empty())
        record.update({{"source", source.path}, {"source_hash", source.hash}});
      record["columns"] = {{"clip", record.at("path")}};
      if (source.record->is_object()) pass_on(source.record, record);
    }
    outcome.errors = ClipStore::faults(finished, source.path);
    if (outcome.clips == 0 && outcome.errors.empty())
      outcome.errors.emplace_back(source.path, kNoClip, Cause::empty);
    if (!options_.report.empty()) outcome.json = dump_json(finished);
  }

  const ClipOptions& options_;
  int threads_;
  Crew& crew_;
  Progress& progress_;
  Json settings_;
};

/// Returns the only video of the input, or an empty string if the input may have several videos.
std::string single_video(const std::vector<std::string>& inputs) {
  if (inputs.size() != 1 || inputs[0] == "-" || inputs[0] == io::kNames) return {};
  return io::is_manifest_name(inputs[0]) ? "" : inputs[0];
}

}  // namespace

Json ClipRecipe::json() const {
  const char* const detectors[] = {"combined", "transnetv2"};
  const char* const audios[] = {"drop", "copy", "aac"};
  Json j = {{"version", 2},  // of the rules that find changes of shot
            {"detector", detectors[static_cast<int>(shots.detector)]},
            {"threshold", shots.used_threshold()},
            {"gradual", shots.gradual},
            {"strictness", shots.strictness},
            {"stitch", stitch ? Json(stitch_threshold) : Json()},
            {"min_seconds", min_seconds},
            {"max_seconds", max_seconds},
            {"stream", stream},
            {"encoder", encoder},
            {"preset", preset},
            {"quality", quality},
            {"audio", audios[static_cast<int>(audio)]}};
  // Options that are not set are left out, so that a new option does not change the keys of clips.
  if (size.any()) j["scale"] = size.text();
  if (rate.num > 0) j["fps"] = fmt::format("{}/{}", rate.num, rate.den);
  if (crop) j["crop"] = "auto";
  if (stride > 0) j["stride"] = stride;
  if (given) j["spans"] = true;
  if (!deinterlace) j["deinterlace"] = "off";
  if (keep_hdr) j.update({{"hdr", "keep"}, {"hdr_encoder", hdr_encoder}});
  if (smart) j.update({{"encode", "smart"}, {"smart_encoder", smart_encoder}});
  if (stitch && stitch_sound) j["stitch_sound"] = 1;  // version of the rule
  if (!stitch_model->is_null()) j["stitch_model"] = stitch_model;
  if (!detector_model->is_null()) j["detector_model"] = detector_model;
  return j;
}

namespace {

/// Throws Error{usage} if frames of the encoder cannot be joined to copied frames.
void check_smart_encoder(const std::string& encoder) {
  if (encoder.empty()) return;
  std::string known;
  for (const char* codec : {"h264", "hevc", "vp9", "av1"}) {
    const std::string name = media::splice_encoder(codec);
    if (name == encoder) return;
    if (!name.empty()) known += (known.empty() ? "" : ", ") + name;
  }
  fail_usage(
      "--smart-cut cannot join frames of encoder '{}' to copied ones (of these it can: {})",
      encoder, known.empty() ? "none" : known);
}

}  // namespace

Json clip_settings(const ClipOptions& options) {
  Json settings = {{"recipe", options.recipe.json()},
                   {"shard_bytes", options.shard_bytes},
                   {"verify", options.verify}};
  if (options.readable_names) settings["names"] = "readable";
  return settings;
}

void choose_encoders(ClipRecipe& recipe) {
  if (recipe.smart) {
    recipe.smart_encoder = recipe.encoder;
    check_smart_encoder(recipe.smart_encoder);
  }
  if (recipe.keep_hdr)
    recipe.hdr_encoder = recipe.encoder.empty() ? media::default_ten_bit_encoder() : recipe.encoder;
  if (recipe.encoder.empty()) recipe.encoder = media::default_encoder();
  media::EncodeOptions trial{.encoder = recipe.encoder,
                             .quality = recipe.quality,
                             .preset = recipe.preset,
                             .width = 64,
                             .height = 64,
                             .time_base = {1, 25},
                             .frame_rate = {25, 1}};
  media::VideoEncoder{trial};
  if (!recipe.keep_hdr) return;
  trial.encoder = recipe.hdr_encoder;
  trial.bit_depth = 10;
  media::VideoEncoder{trial};
}

namespace {

std::uint64_t bytes_ahead(const ClipOptions& options, int slots) {
  const auto count = static_cast<std::uint64_t>(slots);
  return options.ahead_bytes > UINT64_MAX / count ? UINT64_MAX : options.ahead_bytes * count;
}

/// Writes the ledger of a bucket now and then, so that a killed run need not hash all again.
class LedgerKeeper {
 public:
  explicit LedgerKeeper(io::HashLedger& ledger) : ledger_(ledger) {}
  /// Call it on the thread that uses the ledger.
  void keep() {
    constexpr double kPause = 60;
    if (!io::is_bucket(ledger_.path()) || since_.seconds() < kPause) return;
    ledger_.finish();
    since_ = Stopwatch();
  }

 private:
  io::HashLedger& ledger_;
  Stopwatch since_;
};

}  // namespace

void check_encoders(ClipRecipe recipe) {
  if (!media::encodes_on_gpu(recipe.encoder)) return choose_encoders(recipe);
  media::coded_size(recipe.encoder, 2, 2);  // throws if FFmpeg lacks the encoder
}

long run(const ClipOptions& given, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest) {
  ClipOptions options = given;
  choose_encoders(options.recipe);
  std::vector<io::Fault> bad_spans;
  GivenSpans spans(options.spans, single_video(options.inputs),
                   [&](io::Fault fault) { bad_spans.push_back(std::move(fault)); });
  if (options.recipe.given && spans.left().empty() && bad_spans.empty())
    fail_usage("the files of --spans hold no span");
  io::make_directories(options.directory);
  const ListedPart* const part = options.part;
  const std::string own = part ? part->unfinished : options.directory;
  ClipItems items(options.inputs, options.shard_bytes, own);
  io::HashLedger ledger(io::join_path(own, kLedger));
  LedgerKeeper keeper(ledger);
  items.use(&ledger);
  if (part)
    items.follow_list();
  else if (options.join != Joining::none && options.format == ClipFormat::shards)
    items.join(options.join == Joining::all ? 0 : kOwnShards);
  if (options.recipe.given) items.use(&spans);
  Crew crew(slots, bytes_ahead(options, slots.threads()));
  ClipJob job(options, decoder_threads(options.inputs, slots.threads()), crew, progress);
  std::optional<io::ErrorLog> errors;
  if (!part) errors.emplace(io::join_path(options.directory, "errors.jsonl"), "vfm-clip");
  ClipReport report(options.report, options.directory);
  for (const io::Fault& fault : bad_spans)
    errors->add(fault);
  Leftovers leftovers(own, options.readable_names);
  std::int64_t clips = 0;
  bool any = false;
  progress.start("videos", shard::count_videos(options.inputs));
  JoinedItems joined(items, options, job.settings(),
                     [&](const ClipItem& item) { leftovers.see(item); });
  share::for_each_ordered<JoinedItems::Work, Outcome>(
      slots,
      [&]() -> std::optional<JoinedItems::Work> {
        if (part && part->lost()) return std::nullopt;
        keeper.keep();
        return joined.next();
      },
      [&](const JoinedItems::Work& work) {
        return work.item.kind == ClipItem::Kind::video ? job.video(work) : job.other(work);
      },
      [&](Outcome& outcome) {
        any = true;
        if (outcome.batch) job.finish(outcome);
        for (const Json& record : outcome.records)
          part ? part->record(record) : manifest.write(record);
        for (const io::Fault& fault : outcome.errors)
          part ? part->fault(fault) : errors->add(fault);
        if (!outcome.remark.empty()) log_warning("{}", outcome.remark);
        if (!outcome.json.empty()) report.add(outcome.json);
        clips += outcome.clips;
        if (!outcome.account.empty()) log_info("{}", outcome.account);
        progress.add(outcome.sources);
      },
      outcome_weight);
  if (part) {
    if (!part->lost()) items.streams().check_whole("the part is not finished");
    return 0;
  }
  for (const std::string& source : spans.left())
    errors->add({source, "has spans, but is not in the input", Cause::missing});
  if (any && (clips > 0 || errors->count() == 0) && options.most_seconds <= 0)
    leftovers.finish(options.prune, items.streams().broken_off(), *errors);
  ledger.finish();
  log_info("sources: {} read, {} known by the ledger", ledger.files_read(), ledger.files_known());
  errors->finish();
  report.write(items.streams().broken_off());
  items.streams().check_whole("the videos that came are cut and kept");
  if (!any) fail("no videos in the input");
  if (clips == 0 && errors->count() > 0) fail("no clips: nothing in the input could be used");
  return static_cast<long>(errors->count());
}

}  // namespace vfm::clip
