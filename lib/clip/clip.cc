// SPDX-License-Identifier: Apache-2.0
#include "clip/clip.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "clip/clip_report.h"
#include "clip/cutter.h"
#include "clip/images.h"
#include "clip/names.h"
#include "clip/source.h"
#include "clip/store.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "media/encoder.h"
#include "shard/input_totals.h"

namespace vfm::clip {
namespace {

/// What one item gave, to be reported in the order of the items.
struct Outcome {
  std::vector<Json> records;
  std::vector<io::Fault> errors;
  std::string remark;   // a warning that is no error
  std::string account;  // for -v: what became of it
  std::size_t sources = 0;
  std::int64_t clips = 0;
  std::string json;  // of the finished source, for the report
};

/// Fields of the input record that are not ours go on with each of its shards.
void pass_on(const Json& from, Json& to) {
  for (const auto& [name, value] : from.items())
    if (!to.contains(name)) to[name] = value;
}

class ClipJob {
 public:
  ClipJob(const ClipOptions& options, int threads, Progress& progress)
      : options_(options), threads_(threads), progress_(progress) {
    settings_ = {{"recipe", options.recipe.json()},
                 {"shard_bytes", options.shard_bytes},
                 {"verify", options.verify}};
    if (options.readable_names) settings_["names"] = "readable";
    ClipRecipe for_sdr = options.recipe;
    for_sdr.keep_hdr = false;
    sdr_recipe_ = for_sdr.json();
  }

  Outcome work(ClipItem& item) {
    Outcome outcome = work_on(item);
    const bool counts = item.kind != ClipItem::Kind::passed;
    outcome.sources = counts ? std::max<std::size_t>(1, item.sources.size()) : 0;
    return outcome;
  }

 private:
  Outcome work_on(ClipItem& item) {
    switch (item.kind) {
      case ClipItem::Kind::video:
        return video(item.sources[0]);
      case ClipItem::Kind::images:
        return images(item);
      default:
        break;
    }
    Outcome outcome;
    if (item.kind == ClipItem::Kind::passed) outcome.records = {item.sources[0].record};
    if (item.kind == ClipItem::Kind::bad) outcome.errors = {{item.input, item.message}};
    if (item.kind == ClipItem::Kind::duplicate)
      outcome.remark = fmt::format("'{}' {}; skipped", item.input, item.message);
    return outcome;
  }

  Outcome video(const ClipSource& source) {
    const Stopwatch watch;
    Outcome outcome;
    try {
      const auto made =
          make_clip_store(options_.format, options_.directory, source.hash.substr(0, 16),
                          settings_of(source), options_.shard_bytes);
      ClipStore& store = *made;
      Json finished = store.find_or_hold(options_.force);
      const bool there = !finished.is_null();
      if (!there) {
        std::optional<Json> summary = cut(source, store, !options_.force);
        if (!summary) summary = cut(source, store, false);
        finished = *std::move(summary);
      }
      report(finished, source, outcome);
      const bool shots = !options_.recipe.given && options_.recipe.stride <= 0;
      outcome.account = fmt::format(
          "'{}': {}{} clips, {} of video{}", source.path,
          shots ? fmt::format("{} shots, ", finished.at("cuts").size() + 1) : std::string(),
          outcome.clips, format_seconds(finished.value("seconds", 0.0)),
          there ? std::string(", there already") : " in " + watch.text());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) throw;
      outcome.errors.push_back({source.path, error.what()});
    }
    return outcome;
  }

  /// Everything but the source that decides its clips' bytes.
  Json settings_of(const ClipSource& source) const {
    Json settings = settings_;
    if (!source.spans) return settings;
    std::string text;
    for (const GivenSpan& span : *source.spans)
      text += span.text();
    settings["spans"] = hash_hex(text);
    return settings;
  }

  /// What decides the clip. What does not touch it is not named, so it keeps the key that it had.
  std::string key_of(const ClipSource& source, const media::StreamInfo& info,
                     const Clip& clip) const {
    Json identity = {{"source", source.hash},
                     {"stream", info.stream},
                     {"begin", clip.span.begin},
                     {"end", clip.span.end},
                     {"base", {clip.span.base.num, clip.span.base.den}},
                     {"recipe", clip.hdr ? settings_.at("recipe") : sdr_recipe_}};
    if (info.is_hdr() && !clip.hdr) identity["tone_map"] = "bt2390";
    if (info.is_wide_sdr()) identity["gamut"] = "bt709";
    if (info.interlaced && options_.recipe.deinterlace) identity["deinterlace"] = "auto";
    const std::string key = hash_hex(dump_json(identity));
    return options_.readable_names ? readable_key(source.path, clip.span, key) : key;
  }

  static shard::Sample sample_of(const ClipSource& source, const std::string& key, Clip&& clip) {
    Json facts = {
        {"key", key}, {"media", "video"}, {"source", source.path}, {"source_hash", source.hash}};
    facts.update(clip.facts);
    if (clip.given) pass_on(clip.given->fields, facts);
    shard::Sample sample{key, {}};
    sample.members.push_back({"mp4", std::move(clip.mp4)});
    sample.members.push_back({"json", dump_json(facts)});
    return sample;
  }

  /// Nothing if clips that the store kept are not those that the video gives.
  std::optional<Json> cut(const ClipSource& source, ClipStore& store, bool keep) {
    ClipCutter cutter(source.path, options_.recipe, options_.verify,
                      {.stream = options_.recipe.stream,
                       .threads = threads_,
                       .deinterlace = options_.recipe.deinterlace,
                       .keep_hdr = options_.recipe.keep_hdr,
                       .hardware = options_.hardware},
                      progress_, source.spans);
    cutter.keep(store.begin(keep));
    while (std::optional<Clip> clip = cutter.next()) {
      const std::string key = key_of(source, cutter.info(), *clip);
      const std::optional<KeptClip>& kept = clip->kept;
      const bool fits =
          kept ? kept->key == key && kept->end == clip->span.end : cutter.kept().empty();
      if (!fits) return std::nullopt;
      if (kept)
        store.add_kept();
      else
        store.add(sample_of(source, key, std::move(*clip)));
    }
    if (!cutter.kept().empty()) return std::nullopt;
    Json summary = {{"kind", "clips"}, {"source", source.path}, {"source_hash", source.hash}};
    summary.update(cutter.summary());
    summary["errors"] = cutter.errors();
    if (cutter.corrupt() > 0)
      summary["errors"].push_back(fmt::format(
          "{} packets or frames are damaged or missing; the rest is used", cutter.corrupt()));
    if (cutter.sound_corrupt() > 0)
      summary["errors"].push_back(fmt::format(
          "{} packets of the sound are damaged; the rest is used", cutter.sound_corrupt()));
    return store.finish(std::move(summary));
  }

  Outcome images(const ClipItem& item) {
    Outcome outcome;
    std::string names;
    for (const ClipSource& source : item.sources)
      names += source.hash;
    try {
      const auto made =
          make_clip_store(options_.format, options_.directory, hash_hex(names).substr(0, 16),
                          settings_, options_.shard_bytes);
      ClipStore& store = *made;
      Json finished = store.find_or_hold(options_.force);
      if (finished.is_null()) {
        store.begin(false);
        std::vector<io::Fault> errors;
        for (const ClipSource& source : item.sources) {
          check_stop();
          try {
            store.add(image_sample(source.path, source.hash, options_.readable_names));
          } catch (const ImageError& error) {
            errors.push_back({source.path, error.what()});
          }
        }
        finished = store.finish({{"kind", "images"}, {"errors", io::to_json(errors)}});
      }
      report(finished, {}, outcome);
      Json sources = Json::array();
      for (const ClipSource& source : item.sources)
        sources.push_back(source.path);
      for (Json& record : outcome.records)
        record["sources"] = sources;
    } catch (const Error& error) {
      outcome.errors.push_back({item.sources[0].path, error.what()});
    }
    return outcome;
  }

  /// Reports what a finished source gave, also where an earlier run finished it.
  void report(const Json& finished, const ClipSource& source, Outcome& outcome) const {
    outcome.clips = need_integer(finished, "clips", "the clip index");
    outcome.records = ClipStore::records(finished, options_.directory);
    for (Json& record : outcome.records) {
      if (!source.path.empty()) record["source"] = source.path;
      record["columns"] = {{"clip", record.at("path")}};
      if (source.record.is_object()) pass_on(source.record, record);
    }
    outcome.errors = ClipStore::faults(finished, source.path);
    if (outcome.clips == 0 && outcome.errors.empty())
      outcome.errors.push_back({source.path, "no clip: every shot is too short"});
    outcome.json = dump_json(finished);
  }

  const ClipOptions& options_;
  int threads_;
  Progress& progress_;
  Json settings_, sdr_recipe_;
};

/// The only video of the input, if its arguments say that there is no other.
std::string single_video(const std::vector<std::string>& inputs) {
  if (inputs.size() != 1 || inputs[0] == "-" || inputs[0] == io::kNames) return {};
  const std::string extension = io::extension(inputs[0]);
  return extension == "jsonl" || extension == "ndjson" ? "" : inputs[0];
}

}  // namespace

Json ClipRecipe::json() const {
  const double threshold =
      shots.threshold > 0 ? shots.threshold : curate::default_threshold(shots.detector);
  const char* const detectors[] = {"content", "adaptive", "histogram", "combined"};
  const char* const audios[] = {"drop", "copy", "aac"};
  Json j = {{"version", 1},
            {"detector", detectors[static_cast<int>(shots.detector)]},
            {"threshold", threshold},
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
  // What is not set is not named: so clips keep the keys that they had before there was a choice.
  if (size.any()) j["scale"] = size.text();
  if (rate.num > 0) j["fps"] = fmt::format("{}/{}", rate.num, rate.den);
  if (crop) j["crop"] = "auto";
  if (stride > 0) j["stride"] = stride;
  if (given) j["spans"] = true;
  if (!deinterlace) j["deinterlace"] = "off";
  if (keep_hdr) j.update({{"hdr", "keep"}, {"hdr_encoder", hdr_encoder}});
  return j;
}

namespace {

/// Chooses the encoders that were not named. One that is not there, or takes no such preset or
/// depth, is found here, before any work.
void choose_encoders(ClipRecipe& recipe) {
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
  media::Encoder{trial};
  if (!recipe.keep_hdr) return;
  trial.encoder = recipe.hdr_encoder;
  trial.bit_depth = 10;
  media::Encoder{trial};
}

}  // namespace

long run(const ClipOptions& given, Slots& slots, Progress& progress, io::ManifestWriter& manifest) {
  ClipOptions options = given;
  choose_encoders(options.recipe);
  std::vector<io::Fault> bad_spans;
  GivenSpans spans(options.spans, single_video(options.inputs),
                   [&](io::Fault fault) { bad_spans.push_back(std::move(fault)); });
  if (options.recipe.given && spans.left().empty() && bad_spans.empty())
    fail_usage("there is no span in the files of --spans");
  io::make_directories(options.directory);
  ClipItems items(options.inputs, options.shard_bytes);
  if (options.recipe.given) items.use(&spans);
  ClipJob job(options, decoder_threads(options.inputs, slots.threads()), progress);
  io::ErrorLog errors(io::join_path(options.directory, "errors.jsonl"), "vfm-clip");
  ClipReport report(options.report, options.directory);
  for (const io::Fault& fault : bad_spans)
    errors.add(fault);
  std::int64_t clips = 0;
  bool any = false;
  progress.start("videos", shard::count_videos(options.inputs));
  for_each_ordered<ClipItem, Outcome>(
      slots, [&] { return items.next(); }, [&](ClipItem& item) { return job.work(item); },
      [&](Outcome& outcome) {
        any = true;
        for (const Json& record : outcome.records)
          manifest.write(record);
        for (const io::Fault& fault : outcome.errors)
          errors.add(fault);
        if (!outcome.remark.empty()) log_warning("{}", outcome.remark);
        if (!outcome.json.empty()) report.add(outcome.json);
        clips += outcome.clips;
        if (!outcome.account.empty()) log_info("{}", outcome.account);
        progress.add(outcome.sources);
      });
  for (const std::string& source : spans.left())
    errors.add({source, "has spans, but is not in the input"});
  errors.finish();
  report.write(items.streams().broken_off());
  items.streams().check_whole("what came is cut and kept");
  if (!any) fail("no videos in the input");
  if (clips == 0 && errors.count() > 0) fail("no clips: nothing in the input could be used");
  return static_cast<long>(errors.count());
}

}  // namespace vfm::clip
