// SPDX-License-Identifier: Apache-2.0
#include "columns/column_job.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "io/file.h"
#include "io/kept_objects.h"
#include "io/places.h"
#include "parts/part_inputs.h"
#include "shard/receipt.h"
#include "shard/shard_input.h"
#include "share/ordered.h"

namespace vfm::columns {
namespace {

constexpr shard::WriterOptions kIndexes = {.energon_index = true, .dali_index = false};

using Errors = std::vector<io::Fault>;

struct Item {
  Errors before;                     // invalid lines before this record
  std::optional<io::Record> record;  // null at the end of the input
  std::string column_path;           // empty if the record is passed on
  std::string refused;               // reason why the shard cannot be used, or empty
};

struct Outcome {
  Errors errors;
  bool unread = false;               // the shard could not be read, so its error may pass
  HeldJson column;                   // facts of the column's tar
  std::optional<io::Record> record;  // for the manifest
  bool shard = false;
  std::string directory;  // of the column
};

std::string hash_or_empty(const std::string& path) {
  return io::file_exists(path) ? io::hash_file(path) : std::string();
}

/// Returns the size and hash of each tar. The hash in the record is used if the size in the record
/// is right. check_shard_bytes() checks this hash before a column is made.
Json source_hashes(const io::Record& record, const std::vector<std::string>& tars) {
  Json sources = Json::array();
  for (const std::string& tar : tars) {
    const io::File file = shard::open_tar(tar);
    std::string hash;
    if (tar == record.path() &&
        get_integer(record.json, "bytes") == static_cast<std::int64_t>(file.size()))
      hash = get_string(record.json, "xxh3").value_or("");
    if (hash.empty()) hash = io::hash_file(tar);
    sources.push_back({{"bytes", file.size()}, {"xxh3", hash}});
  }
  return sources;
}

/// Returns the tars of a completed record (shard::complete_shard()) that the job reads.
std::vector<std::string> tars_of(const ColumnJob& job, const io::Record& record) {
  std::vector<std::string> unread = job.unread;
  unread.push_back(job.column);
  return tars_without(record, unread);
}

Json made_from_of(const ColumnJob& job, const io::Record& record,
                  const std::vector<std::string>& tars) {
  return {{"settings", job.settings(record)}, {"sources", source_hashes(record, tars)}};
}

/// Throws Error if the column or its inputs differ from the notes.
void check_notes(const ColumnJob& job, const Item& item, const Json& notes) {
  shard::check_limit(notes, job.limits);
  shard::check_error_limits(notes);
  shard::check_written(item.column_path, notes.at("record"), kIndexes);
  for (const auto& [name, hash] : notes.at("inputs").items()) {
    const std::string path = io::named_from(io::dir_name(item.record->path()), name);
    if (hash_or_empty(path) != (hash.is_null() ? "" : hash.get<std::string>()))
      fail("'{}' has changed", path);
  }
  const Errors errors = io::parse_faults(notes.at("errors"));
  if (std::ranges::any_of(errors, unanswered)) fail("samples of it have no answer of a server");
  if (job.parts &&
      std::ranges::any_of(errors, [](const io::Fault& fault) { return may_pass(fault.cause); }))
    fail("samples of it had errors that may pass");
}

using Origins = std::map<std::string, std::int64_t>;

/// Returns the origins of an existing column of the same tars. Returns none if `force` is set, or
/// if the column is damaged.
Origins origins_before(const ColumnJob& job, const Item& item, const Json& made_from) {
  const std::string notes_path = shard::receipt_path(item.column_path);
  if (!job.origins || job.force || !io::file_exists(notes_path)) return {};
  try {
    const Json notes = parse_json(io::read_file(notes_path), notes_path);
    const auto from = notes.find("made_from");
    if (from == notes.end() || !from->is_object()) return {};
    if (from->value("sources", Json()) != made_from.at("sources")) return {};
    return job.origins(item.column_path);
  } catch (const Error&) {
    return {};
  }
}

void tell_lost(const ColumnJob& job, const Item& item, const Origins& before) {
  if (before.empty()) return;
  Origins now = job.origins(item.column_path);
  for (const auto& [origin, count] : before)
    if (now[origin] < count)
      log_warning("'{}' is replaced: {} of its samples were made from {}, and {} are now",
                  item.column_path, count, origin, now[origin]);
}

/// Makes the column if it does not exist, and returns its notes.
Json make_column(const ColumnJob& job, const Item& item, const std::vector<std::string>& tars,
                 const Json& made_from) {
  const std::string notes_path = shard::receipt_path(item.column_path);
  const auto check = [&](const Json& notes) { check_notes(job, item, notes); };
  shard::Receipt receipt(notes_path, "made_from", made_from);
  if (Json notes = receipt.find_or_hold(check, job.force); !notes.is_null()) {
    log_info("'{}' is there already", item.column_path);
    const auto samples = get_integer(notes.at("record"), "samples").value_or(0);
    if (job.progress) job.progress->add(static_cast<std::uint64_t>(samples));
    return notes;
  }
  const Stopwatch watch;
  ColumnNotes found;
  shard::check_shard_bytes(*item.record);
  const Origins before = origins_before(job, item, made_from);
  shard::JoinedReader reader(tars, job.limits);
  shard::Writer writer(item.column_path, kIndexes);
  job.fill(*item.record, reader, writer, found);
  found.errors.insert(found.errors.end(), reader.faults().begin(), reader.faults().end());
  if (writer.samples() == 0 && !found.errors.empty())
    fail_as(found.errors.back().cause, "no sample of it can be used: {}",
            found.errors.back().message);
  Json notes = {{"tool", job.tool}, {"made_from", made_from}, {"record", writer.finish()}};
  tell_lost(job, item, before);
  notes["record"].erase("path");  // the folder may be moved
  if (reader.any_refused()) notes["max_member"] = job.limits.member;
  notes["inputs"] = Json::object();
  for (const auto& [path, hash] : found.inputs->items())
    notes["inputs"][io::name_from(io::dir_name(item.record->path()), path)] = hash;
  notes["errors"] = io::to_json(found.errors);
  if (Json limits = shard::limits_of_errors(found.errors); !limits.is_null())
    notes["error_limits"] = std::move(limits);
  if (!found.of_record->empty()) notes["of_record"] = found.of_record;
  receipt.write(dump_json_pretty(notes));
  log_info("'{}': {} samples, {} errors, in {}", item.record->path(), writer.samples(),
           found.errors.size(), watch.text());
  return notes;
}

Outcome work_on(const ColumnJob& job, Item& item) {
  Outcome out;
  out.errors = std::move(item.before);
  if (!item.record) return out;
  io::Record& record = *item.record;
  if (item.column_path.empty() && item.refused.empty()) {
    out.record = std::move(record);
    return out;
  }
  out.shard = true;
  const std::string path = get_string(record.json, "path").value_or(record.where);
  if (!item.refused.empty()) {
    out.errors.emplace_back(path, item.refused,
                            item.column_path.empty() ? Cause::line : Cause::duplicate);
    return out;
  }
  // The error log must not create the directory of a mistyped path.
  if (const std::string directory = io::dir_name(item.column_path); io::file_exists(directory))
    out.directory = directory;
  try {
    shard::complete_shard(record);
    const auto tars = tars_of(job, record);
    const io::KeptObjects kept(tars);  // hashed, perhaps looked through, and read
    const Json made_from = made_from_of(job, record, tars);
    const Json& sources = made_from.at("sources");
    const Json notes = make_column(job, item, tars, made_from);
    for (io::Fault& fault : io::parse_faults(notes.at("errors")))
      out.errors.push_back(std::move(fault));
    Json columns = std::move(record.json["columns"]);
    record.json->erase("columns");
    columns[job.column] = item.column_path;
    out.column = notes.at("record");
    for (const std::string& name : job.record_fields)
      record.json->erase(name);
    const auto add = [&](const char* name, const Json& value) {
      if (!record.json->contains(name)) record.json[name] = value;
    };
    add("samples", notes.at("record").at("samples"));
    if (tars[0] == path) {
      add("bytes", sources[0].at("bytes"));
      add("xxh3", sources[0].at("xxh3"));
    }
    if (const auto more = notes.find("of_record"); more != notes.end() && more->is_object())
      for (const auto& [name, value] : more->items())
        record.json[name] = value;
    record.json["columns"] = std::move(columns);
    out.record = std::move(record);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device) throw;
    out.errors.emplace_back(path, error);
    out.unread = error.cause() == Cause::open;
  }
  return out;
}

/// Reads the manifest and decides, in order, what to do with each record.
class Items {
 public:
  Items(const ColumnJob& job, const std::vector<std::string>& inputs)
      : job_(job), reader_(inputs, bad(), job.reads, shard::ListedClips::Later::marked) {}
  /// The shards of a part.
  Items(const ColumnJob& job, const std::vector<std::string>& inputs,
        const shard::PartShards& shards)
      : job_(job), reader_(shards, inputs, bad(), job.reads, shard::ListedClips::Later::marked) {}

  std::optional<Item> next() {
    if (ended_) return std::nullopt;
    Item item;
    item.record = reader_.next();
    item.before = std::exchange(bad_, {});
    if (!item.record) {
      ended_ = true;
      if (item.before.empty()) return std::nullopt;
    } else if (item.record->kind == "shard") {
      place(item);
    }
    return item;
  }

  io::InputStreams streams() const { return reader_.streams(); }

 private:
  void place(Item& item) {
    const auto path = get_string(item.record->json, "path");
    if (!path) {
      item.refused = "the shard record has no 'path'";
      return;
    }
    item.column_path = shard::column_tar_path(*path, job_.column, job_.directory);
    const auto [other, is_new] = taken_.emplace(item.column_path, *path);
    if (is_new) return;
    item.refused = other->second == *path
                       ? std::string("is in the input twice")
                       : fmt::format("its column would replace that of '{}': both are '{}'",
                                     other->second, item.column_path);
  }

  io::OnFault bad() {
    return [this](io::Fault fault) { bad_.push_back(std::move(fault)); };
  }

  const ColumnJob& job_;
  Errors bad_;
  shard::ShardInput reader_;
  std::map<std::string, std::string> taken_;  // column path -> shard
  bool ended_ = false;
};

std::size_t column_weight(const Outcome& outcome) {
  return held_bytes(outcome.errors) + outcome.directory.size() + held_bytes(outcome.column) +
         (outcome.record ? held_bytes(outcome.record->json) : 0);
}

}  // namespace

bool unanswered(const io::Fault& fault) {
  return fault.cause == Cause::server || fault.cause == Cause::rejected;
}

std::vector<std::string> tars_without(const io::Record& record,
                                      const std::vector<std::string>& columns) {
  std::vector<std::string> tars;
  for (const auto& [name, path] : record.json->at("columns").items()) {
    auto tar = path.get<std::string>();
    if (std::ranges::find(columns, name) == columns.end() &&
        std::ranges::find(tars, tar) == tars.end())
      tars.push_back(std::move(tar));
  }
  if (tars.empty()) tars.push_back(record.path());
  return tars;
}

namespace {

/// Does the parts of a job. The settings and the tars of a part's shards are its inputs.
class ColumnParts {
 public:
  ColumnParts(const ColumnJob& job, const std::vector<std::string>& inputs, share::Slots& slots)
      : job_(job), inputs_(inputs), slots_(slots) {}

  long run(io::ManifestWriter& manifest) {
    shard::PartSteps steps;
    steps.terms.reads = job_.reads;
    if (job_.awaits && job_.parts->choice.follow) steps.terms.awaits = job_.reads;
    steps.terms.settings = job_.common;
    steps.terms.options = job_.options;
    steps.digest_of = [this](int part, int parts) { return digest(part, parts); };
    steps.make = [this](const parts::Part&, const shard::PartShards& shards,
                        shard::PartOutput& output) { return make(shards, output); };
    return shard::for_each_part(*job_.parts, manifest, steps);
  }

 private:
  io::InputStreams make(const shard::PartShards& shards, shard::PartOutput& output) const {
    Items items(job_, inputs_, shards);
    share::for_each_ordered<Item, Outcome>(
        slots_, [&] { return items.next(); }, [&](Item& item) { return work_on(job_, item); },
        [&](Outcome& outcome) {
          for (const io::Fault& fault : outcome.errors)
            output.fault(fault, outcome.unread || unanswered(fault));
          if (!outcome.record) return;
          if (job_.done) job_.done(*outcome.record);
          output.wrote(outcome.record->json->at("columns").at(job_.column), outcome.column);
          output.record(outcome.record->json);
        },
        column_weight);
    return items.streams();
  }

  /// Reads the digests of all parts at once, or of the only part that is done here.
  std::string digest(int part, int parts) {
    if (!digests_.empty()) return digests_[part];
    const std::optional<int> only = job_.parts->choice.part;
    Items items(job_, inputs_);
    while (std::optional<Item> item = items.next()) {
      const auto path = item->record && item->record->kind == "shard"
                            ? get_string(item->record->json, "path")
                            : std::nullopt;
      const int number = path ? parts::part_of_shard(*path, parts) : -1;
      if (number < 0 || (only && number != *only)) continue;
      std::string& digest = digests_[number];
      digest = hash_hex(digest + io::base_name(*path) + input_of(*item->record));
    }
    digests_[-1];  // read, though no shard may have come
    return digests_[part];
  }

  /// Returns what decides the bytes of a shard's column. A shard that cannot be read is another
  /// input when it can.
  std::string input_of(io::Record& record) const {
    try {
      shard::complete_shard(record);
      return dump_json(made_from_of(job_, record, tars_of(job_, record)));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      return error.what();
    }
  }

  const ColumnJob& job_;
  const std::vector<std::string>& inputs_;
  share::Slots& slots_;
  std::map<int, std::string> digests_;
};

}  // namespace

long run_column_job(const ColumnJob& job, const std::vector<std::string>& inputs,
                    share::Slots& slots, io::ManifestWriter& manifest) {
  if (job.parts) return ColumnParts(job, inputs, slots).run(manifest);
  Items items(job, inputs);
  std::optional<io::ErrorLog> errors;
  Errors early;  // errors before the log's directory is known
  bool any = false;
  const auto open_log = [&](const std::string& directory) {
    io::make_directories(directory);
    errors.emplace(io::join_path(directory, job.column + "-errors.jsonl"), job.tool);
    for (const io::Fault& fault : std::exchange(early, {}))
      errors->add(fault);
  };
  if (!job.directory.empty()) open_log(job.directory);
  share::for_each_ordered<Item, Outcome>(
      slots, [&] { return items.next(); }, [&](Item& item) { return work_on(job, item); },
      [&](Outcome& outcome) {
        any = any || outcome.shard;
        if (!errors && !outcome.directory.empty()) open_log(outcome.directory);
        for (const io::Fault& fault : outcome.errors) {
          if (errors)
            errors->add(fault);
          else
            early.push_back(fault);
        }
        if (!outcome.record) return;
        if (outcome.shard && job.done) job.done(*outcome.record);
        if (!outcome.shard || shard::counts(*outcome.record)) manifest.write(outcome.record->json);
      },
      column_weight);
  if (!errors) open_log(".");
  errors->finish();
  if (job.ended) job.ended(items.streams().broken_off());
  items.streams().check_whole("the columns of what came are made and kept");
  if (!any && errors->count() == 0) fail("the input has no shard; vfm-clip makes shards of videos");
  return static_cast<long>(errors->count());
}

}  // namespace vfm::columns
