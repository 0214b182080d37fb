// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "base/held_bytes.h"
#include "base/json.h"
#include "base/stop.h"
#include "columns/caption/caption_queue.h"
#include "columns/caption/caption_report.h"
#include "columns/caption/caption_source.h"
#include "columns/caption/refine.h"
#include "columns/caption/sidecar.h"
#include "columns/caption/written_caption.h"
#include "columns/column_job.h"
#include "columns/embed/glimpse.h"
#include "curate/measures/describe.h"
#include "shard/input_totals.h"
#include "shard/media_members.h"
#include "share/ordered.h"
#include "text/captions.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

/// The model of model:DIR and the refiner. Both may be null.
struct SeeingModel {
  std::unique_ptr<models::CaptionModel> model;
  Json config;
  std::unique_ptr<Refiner> refiner;
};

struct SharedSidecars {
  Sidecars files;
  std::mutex mutex = {};
};

class Captioner {
 public:
  Captioner(const CaptionOptions& options, const SeeingModel& seeing, const Endpoint* endpoint,
            const io::Record& record, SharedSidecars& sidecars, ColumnNotes& notes)
      : options_(options),
        seeing_(seeing),
        endpoint_(endpoint),
        record_(record),
        notes_(notes),
        sidecars_(sidecars) {}

  Caption caption(const shard::Sample& sample) {
    const std::size_t before = notes_.errors.size();
    const Json facts = facts_of(sample);
    measured_ = Json::object();
    for (const CaptionSource& source : options_.from.list) {
      std::optional<std::string> text;
      try {
        if (source.kind == CaptionKind::server) return to_ask(source, sample, facts);
        text = ask(source, sample, facts);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::device) throw;
        notes_.errors.emplace_back(name_of(sample), error);
      }
      if (!text || (text->empty() && !options_.keep_empty)) continue;
      Caption found{*text, source.name, std::move(measured_),
                    source.kind == CaptionKind::model ? std::move(by_model_) : Json::object()};
      if (seeing_.refiner) seeing_.refiner->refine(sample.key, name_of(sample), found, notes_);
      found.text = cut_caption(options_, std::move(found.text));
      return found;
    }
    if (!options_.keep_empty && notes_.errors.size() == before)
      notes_.errors.emplace_back(name_of(sample), "no source has a caption for it", Cause::missing);
    return {"", kNoCaption, std::move(measured_), Json::object()};
  }

  std::string name_of(const shard::Sample& sample) const {
    return shard::sample_name(sample.key, record_.path());
  }

 private:
  Caption to_ask(const CaptionSource& source, const shard::Sample& sample, const Json& known) {
    const shard::Member* member = shard::media_member(sample);
    if (member == nullptr) fail_as(Cause::missing, "{}", shard::no_media(sample));
    Caption asked{"", source.name};
    asked.requests =
        endpoint_->requests(*member, fmt::format("{}.{}", sample.key, member->extension), known,
                            options_.hardware, asked.facts);
    return asked;
  }

  Json facts_of(const shard::Sample& sample) {
    const std::string* json = sample.find("json");
    if (json == nullptr) return Json::object();
    try {
      Json facts = parse_json(*json, sample.key + ".json");
      if (facts.is_object()) return facts;
      notes_.errors.emplace_back(name_of(sample), "its json member is not an object",
                                 Cause::format);
    } catch (const Error& error) {
      notes_.errors.emplace_back(name_of(sample), error, Cause::format);
    }
    return Json::object();
  }

  std::optional<std::string> ask(const CaptionSource& source, const shard::Sample& sample,
                                 const Json& facts) {
    switch (source.kind) {
      case CaptionKind::member: {
        const std::string* txt = sample.find("txt");
        return txt ? std::optional(text::clean_line(text::to_utf8(*txt))) : std::nullopt;
      }
      case CaptionKind::field:
        return in_field(source.value, facts);
      case CaptionKind::sidecar:
        return beside(source.value, facts);
      case CaptionKind::model:
        return said(sample, facts);
      case CaptionKind::measure:
        return measured(sample, facts);
      case CaptionKind::server:
        break;  // caption() calls to_ask()
    }
    return std::nullopt;
  }

  /// A sample without a span is the whole source.
  static double begin_of(const Json& facts) { return get_number(facts, "begin").value_or(0); }
  static double end_of(const Json& facts) {
    return get_number(facts, "end").value_or(std::numeric_limits<double>::infinity());
  }

  std::optional<std::string> in_field(const std::string& name, const Json& facts) const {
    for (const Json* place : {&facts, &*record_.json})
      if (const Json* value = find_field(*place, name))
        return text::caption_of_span(text::captions_of_json(*value, "'" + name + "'"),
                                     begin_of(facts), end_of(facts));
    return std::nullopt;
  }

  std::optional<std::string> beside(const std::string& extension, const Json& facts) {
    const std::lock_guard one(sidecars_.mutex);
    return sidecars_.files.caption(sidecars_.files.video_of(facts), extension, begin_of(facts),
                                   end_of(facts), get_number(facts, "source_begin").value_or(0));
  }

  std::optional<std::string> said(const shard::Sample& sample, const Json& known) {
    const shard::Member* member = shard::media_member(sample);
    if (member == nullptr) {
      notes_.errors.emplace_back(name_of(sample), shard::no_media(sample), Cause::missing);
      return std::nullopt;
    }
    ModelCaption caption =
        caption_clip(*member, fmt::format("{}.{}", sample.key, member->extension), known,
                     sample.key, *seeing_.model, options_.model, options_.hardware);
    measured_ = std::move(caption.facts);
    by_model_ = {{"caption_model", seeing_.config}};
    if (!caption.windows->is_null()) by_model_["caption_windows"] = std::move(caption.windows);
    if (caption.cut) by_model_["caption_cut"] = true;
    if (!caption.written->is_null()) by_model_[kWrittenField] = std::move(caption.written);
    by_model_.update(caption.also);
    for (io::Fault& fault : caption.faults)
      notes_.errors.push_back({name_of(sample), std::move(fault.message), fault.cause});
    count_cut(notes_, caption.cuts);
    return caption.text;
  }

  /// Returns nullopt if nothing can be described.
  std::optional<std::string> measured(const shard::Sample& sample, const Json& known) {
    const shard::Member* member = shard::media_member(sample);
    if (member == nullptr) {
      notes_.errors.emplace_back(name_of(sample), shard::no_media(sample), Cause::missing);
      return std::nullopt;
    }
    Json facts = known;
    Seen seen;
    try {
      seen = see_member(*member, fmt::format("{}.{}", sample.key, member->extension), known,
                        options_.hardware);
      facts.update(seen.facts);
      measured_ = std::move(seen.facts);
    } catch (const Error& error) {
      notes_.errors.emplace_back(name_of(sample), error);
    }
    const std::string text = curate::describe(facts, seen.glimpse);
    return text == curate::describe(Json::object(), {}) ? std::nullopt : std::optional(text);
  }

  const CaptionOptions& options_;
  const SeeingModel& seeing_;
  const Endpoint* endpoint_;
  const io::Record& record_;
  ColumnNotes& notes_;
  SharedSidecars& sidecars_;
  Json measured_, by_model_;  // of the current sample
};

/// Returns the facts that decide a column's bytes, except the shard and its caption files.
/// Without a record, returns what all shards have in common.
Json settings_of(const CaptionOptions& options, const SeeingModel& seeing,
                 const io::Record* record) {
  Json settings = {{"version", 1},
                   {"from", options.from.given},
                   {"max_characters", options.max_characters},
                   {"empty", options.keep_empty ? "keep" : "skip"}};
  for (const CaptionSource& source : options.from.list)
    if (record && source.kind == CaptionKind::field)
      if (const Json* value = find_field(record->json, source.value))
        settings["fields"][source.value] = *value;
  if (seeing.model) {
    settings["model"] = seeing.config;
    settings["model"].erase("path");
  }
  if (seeing.refiner) {
    settings["refine"] = seeing.refiner->config();
    settings["refine"].erase("path");
  }
  if (record)
    settings["beside"] = sidecar_places(*record, options.sidecars);
  else
    settings["sidecars"] = options.sidecars;
  if (!options.endpoint.url.empty()) settings["endpoint"] = endpoint_config(options.endpoint);
  return settings;
}

/// Appends `from` to `to`. Counts are added.
void add_notes(ColumnNotes& to, ColumnNotes& from) {
  to.errors.insert(to.errors.end(), from.errors.begin(), from.errors.end());
  to.inputs->update(from.inputs);
  for (const auto& [name, value] : from.of_record->items()) {
    Json& sum = to.of_record[name];
    if (sum.is_number_integer() && value.is_number_integer())
      sum = sum.get<std::int64_t>() + value.get<std::int64_t>();
    else
      sum = value;
  }
}

struct Captioned {
  std::string key, name;
  Caption caption;
  ColumnNotes notes = {};
};

/// Captions as many samples at a time as the model answers together, on each GPU. With workers,
/// each sample has a slot while it is decoded, and this thread has none. Notes about files beside
/// sources come last, sorted by path, because threads read the files in any order.
void caption_together(const CaptionOptions& options, const SeeingModel& seeing,
                      const Endpoint* endpoint, const io::Record& record, share::Slots& slots,
                      shard::JoinedReader& reader, CaptionQueue& queue, ColumnNotes& notes) {
  ColumnNotes beside;
  SharedSidecars sidecars{Sidecars(beside, record, options.sidecars)};
  const workers::StageModels* const workers = options.model.workers;
  const share::Slots::Change away(workers == nullptr);
  const int most = models::kAnswersTogether * (workers ? static_cast<int>(workers->together()) : 1);
  share::Slots together = workers ? share::Slots(slots, most) : share::Slots(most);
  share::for_each_ordered<shard::Sample, Captioned>(
      together,
      [&] {
        std::optional<shard::Sample> sample(std::in_place);
        if (!reader.next(*sample)) sample.reset();
        return sample;
      },
      [&](shard::Sample& sample) {
        check_stop();
        Captioned one;
        Captioner captioner(options, seeing, endpoint, record, sidecars, one.notes);
        one.key = sample.key;
        one.name = captioner.name_of(sample);
        one.caption = captioner.caption(sample);
        return one;
      },
      [&](Captioned& one) {
        add_notes(notes, one.notes);
        queue.push(one.key, one.name, std::move(one.caption));
      },
      [](const Captioned& one) {
        const Caption& made = one.caption;
        return one.key.size() + one.name.size() + made.text.size() + held_bytes(made.facts) +
               held_bytes(made.by_model) + held_bytes(made.requests) +
               held_bytes(one.notes.errors) + held_bytes(one.notes.inputs) +
               held_bytes(one.notes.of_record);
      });
  std::ranges::stable_sort(beside.errors, {}, &io::Fault::input);
  add_notes(notes, beside);
}

}  // namespace

long caption(const CaptionOptions& options, share::Slots& slots, Progress& progress,
             io::ManifestWriter& manifest) {
  SeeingModel seeing;
  if (const std::string folder = options.from.model_folder(); !folder.empty()) {
    seeing.model = options.model.place().captions(folder, options.model.compute,
                                                  options.model.frame_tokens, options.model.int8);
    seeing.model->check_prompt(options.model.video_prompt);
    seeing.model->check_prompt(options.model.picture_prompt);
    for (const FurtherQuestion& question : options.model.also.list)
      seeing.model->check_prompt(question.prompt);
    seeing.config = model_caption_config(*seeing.model, options.model);
  }
  if (!options.refine.folder.empty())
    seeing.refiner = std::make_unique<Refiner>(options.refine, options.model);
  options.model.place().start();
  progress.start("samples", shard::count_samples(options.inputs));
  CaptionReport report(options.report);
  std::optional<Endpoint> endpoint;
  if (!options.endpoint.url.empty()) endpoint.emplace(options.endpoint);
  Endpoint* const server = endpoint ? &*endpoint : nullptr;
  ColumnJob job;
  job.tool = "vfm-caption";
  job.column = "caption";
  job.unread = {"embed", "score"};  // they depend on captions
  job.directory = options.directory;
  job.force = options.force;
  job.parts = options.parts;
  job.progress = &progress;
  job.limits = options.limits;
  job.record_fields = {"caption_cut", "caption_usage"};
  job.origins = [&](const std::string& tar) { return caption_origins(tar, options.limits); };
  job.settings = [&](const io::Record& record) { return settings_of(options, seeing, &record); };
  job.common = settings_of(options, seeing, nullptr);
  job.options = {{"from", "--from"},
                 {"max_characters", "--max-characters"},
                 {"empty", "--keep-empty"},
                 {"model", "the options of --from model:DIR"},
                 {"model.compute", "--compute"},
                 {"model.prompt", "--prompt"},
                 {"refine", "--refine"},
                 {"sidecars", "--sidecars"},
                 {"endpoint", "--endpoint"}};
  job.fill = [&](const io::Record& record, shard::JoinedReader& reader, shard::Writer& writer,
                 ColumnNotes& notes) {
    CaptionQueue queue(options, server, record, writer, notes, progress);
    if (seeing.model || seeing.refiner) {
      caption_together(options, seeing, server, record, slots, reader, queue, notes);
      return queue.finish();
    }
    SharedSidecars sidecars{Sidecars(notes, record, options.sidecars)};
    Captioner captioner(options, seeing, server, record, sidecars, notes);
    shard::Sample sample;
    while (reader.next(sample)) {
      check_stop();
      queue.push(sample.key, captioner.name_of(sample), captioner.caption(sample));
    }
    queue.finish();
  };
  job.done = [&](const io::Record& record) {
    if (shard::counts(record)) report.add(record);
    // The column is on disk. If clips failed, the paid answers are kept for the next run.
    const auto usage = record.json->find("caption_usage");
    const bool whole = usage != record.json->end() && usage->value("failed", 1) == 0;
    if (server && whole) PaidAnswers::remove(answers_path(options, record));
  };
  job.ended = [&](const std::string& broken_off) { report.write(broken_off); };
  return run_column_job(job, options.inputs, slots, manifest);
}

}  // namespace vfm::columns
