// SPDX-License-Identifier: Apache-2.0
#include "jobs/clip.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "jobs/clip_cutter.h"
#include "jobs/clip_images.h"
#include "jobs/clip_report.h"
#include "jobs/clip_source.h"
#include "jobs/clip_store.h"
#include "media/encoder.h"

namespace vfm::jobs {
namespace {

/// What one item gave, to be told in the order of the items.
struct Outcome {
  std::vector<Json> records;
  std::vector<std::pair<std::string, std::string>> errors;  // input, message
  std::string remark;                                       // a warning that is no error
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
  ClipJob(const ClipOptions& options, int threads) : options_(options), threads_(threads) {
    settings_ = {{"recipe", options.recipe.json()},
                 {"shard_bytes", options.shard_bytes},
                 {"verify", options.verify}};
  }

  Outcome work(ClipItem& item) {
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

 private:
  Outcome video(const ClipSource& source) {
    Outcome outcome;
    try {
      ClipStore store(options_.directory, source.hash.substr(0, 16), settings_,
                      options_.shard_bytes);
      std::optional<Json> finished;
      if (!options_.force) finished = store.finished();
      if (!finished) {
        try {
          finished = cut(source, store, !options_.force);
        } catch (const StaleClips&) {
          finished = cut(source, store, false);
        }
      }
      tell(*finished, source, outcome);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) throw;
      outcome.errors.emplace_back(source.path, error.what());
    }
    return outcome;
  }

  Json cut(const ClipSource& source, ClipStore& store, bool keep) {
    ClipCutter cutter(
        source.path, options_.recipe, options_.verify,
        {.stream = options_.recipe.stream, .threads = threads_, .hardware = options_.hardware});
    const Json recipe = options_.recipe.json();
    store.begin(keep);
    cutter.run(
        [&](Clip&& clip) {
          const Json identity = {{"source", source.hash},
                                 {"stream", cutter.info().stream},
                                 {"begin", clip.span.begin},
                                 {"end", clip.span.end},
                                 {"base", {clip.span.base.num, clip.span.base.den}},
                                 {"recipe", recipe}};
          const std::string key = hash_hex(dump_json(identity));
          if (clip.mp4.empty()) return store.add_kept(key);
          Json facts = {{"key", key},
                        {"media", "video"},
                        {"source", source.path},
                        {"source_hash", source.hash}};
          facts.update(clip.facts);
          shard::Sample sample{key, {}};
          sample.members.push_back({"mp4", std::move(clip.mp4)});
          sample.members.push_back({"json", dump_json(facts)});
          store.add(sample);
        },
        [&](std::int64_t pts) { return store.known_end(pts); });
    Json summary = {{"kind", "clips"}, {"source", source.path}, {"source_hash", source.hash}};
    summary.update(cutter.summary());
    summary["errors"] = cutter.errors();
    if (cutter.corrupt() > 0)
      summary["errors"].push_back(fmt::format(
          "{} packets or frames are damaged or missing; the rest is used", cutter.corrupt()));
    return store.finish(std::move(summary));
  }

  Outcome images(const ClipItem& item) {
    Outcome outcome;
    std::string names;
    for (const ClipSource& source : item.sources)
      names += source.hash;
    try {
      ClipStore store(options_.directory, hash_hex(names).substr(0, 16), settings_,
                      options_.shard_bytes);
      std::optional<Json> finished;
      if (!options_.force) finished = store.finished();
      if (!finished) {
        store.begin(false);
        Json errors = Json::array();
        for (const ClipSource& source : item.sources) {
          check_stop();
          try {
            store.add(image_sample(source.path, source.hash));
          } catch (const ImageError& error) {
            errors.push_back({{"input", source.path}, {"error", error.what()}});
          }
        }
        finished = store.finish({{"kind", "images"}, {"errors", errors}});
      }
      tell(*finished, {}, outcome);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      outcome.errors.emplace_back(item.sources[0].path, error.what());
    }
    return outcome;
  }

  /// Says again what a finished source gave, also where it was finished in an earlier run.
  void tell(const Json& finished, const ClipSource& source, Outcome& outcome) const {
    outcome.clips = need_integer(finished, "clips", "the clip index");
    outcome.records = ClipStore::records(finished, options_.directory);
    for (Json& record : outcome.records) {
      if (!source.path.empty()) record["source"] = source.path;
      record["columns"] = {{"clip", record.at("path")}};
      if (source.record.is_object()) pass_on(source.record, record);
    }
    for (const Json& error : finished.at("errors")) {
      if (error.is_object())
        outcome.errors.emplace_back(error.at("input").get<std::string>(),
                                    error.at("error").get<std::string>());
      else
        outcome.errors.emplace_back(source.path, error.get<std::string>());
    }
    if (outcome.clips == 0 && outcome.errors.empty())
      outcome.errors.emplace_back(source.path, "no clip: every shot is too short");
    outcome.json = dump_json(finished);
  }

  const ClipOptions& options_;
  int threads_;
  Json settings_;
};

}  // namespace

Json ClipRecipe::json() const {
  const double threshold =
      shots.threshold > 0 ? shots.threshold : curate::default_threshold(shots.detector);
  const char* const detectors[] = {"content", "adaptive", "histogram", "combined"};
  const char* const audios[] = {"drop", "copy", "aac"};
  return {{"version", 1},
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
}

long clip(const ClipOptions& given, Slots& slots, Progress& progress) {
  ClipOptions options = given;
  if (options.recipe.encoder.empty()) options.recipe.encoder = media::default_encoder();
  // An encoder that is not there, or takes no such preset, is found before any work.
  media::Encoder({.encoder = options.recipe.encoder,
                  .quality = options.recipe.quality,
                  .preset = options.recipe.preset,
                  .width = 64,
                  .height = 64,
                  .time_base = {1, 25},
                  .frame_rate = {25, 1}});
  io::make_directories(options.directory);
  ClipItems items(options.inputs, options.shard_bytes);
  ClipJob job(options, decoder_threads(options.inputs, slots.threads()));
  io::ManifestWriter manifest;
  io::ErrorLog errors(io::join_path(options.directory, "errors.jsonl"), "vfm-clip");
  ClipReport report(options.report, options.directory);
  std::int64_t clips = 0;
  bool any = false;
  progress.start("videos", 0);
  for_each_ordered<ClipItem, Outcome>(
      slots, [&] { return items.next(); }, [&](ClipItem& item) { return job.work(item); },
      [&](Outcome& outcome) {
        any = true;
        for (const Json& record : outcome.records)
          manifest.write(record);
        for (const auto& [input, message] : outcome.errors)
          errors.add(input, message);
        if (!outcome.remark.empty()) log_warning("{}", outcome.remark);
        if (!outcome.json.empty()) report.add(outcome.json);
        clips += outcome.clips;
        progress.add();
      });
  errors.finish();
  report.write();
  if (!any) fail("no videos in the input");
  if (clips == 0 && errors.count() > 0) fail("no clips: nothing in the input could be used");
  return static_cast<long>(errors.count());
}

}  // namespace vfm::jobs
