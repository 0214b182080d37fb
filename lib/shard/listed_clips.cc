// SPDX-License-Identifier: Apache-2.0
#include "shard/listed_clips.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/first_names.h"
#include "io/packed.h"
#include "io/sorter.h"
#include "parts/clip_list.h"
#include "parts/part_inputs.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"

namespace vfm::shard {
namespace {

/// A record of joined videos names thousands of sources.
constexpr std::size_t kSortMemory = std::size_t{64} << 20;
constexpr int kPlaceBytes = 8;

void fail_on(const io::Fault& fault) {
  fail("{}: {}", fault.input, fault.message);
}

/// Returns the values of `one` or of the list `all`.
template <class Value>
std::vector<Value> values_of(const io::Record& record, const char* one, const char* all) {
  try {
    if (const auto list = record.json->find(all); list != record.json->end())
      return list->get<std::vector<Value>>();
    return {record.json->at(one).get<Value>()};
  } catch (const std::exception&) {
    fail("{} has neither '{}' nor '{}'", record.where, one, all);
  }
}

/// The sources of a record, in its order.
struct RecordSources {
  explicit RecordSources(const io::Record& record)
      : paths(values_of<std::string>(record, "source", "sources")),
        hashes(values_of<std::string>(record, "source_hash", "source_hashes")),
        places(values_of<std::uint64_t>(record, "place", "places")) {
    if (paths.empty() || paths.size() != hashes.size() || paths.size() != places.size())
      fail("{} does not tell its sources", record.where);
  }
  std::vector<std::string> paths, hashes;
  std::vector<std::uint64_t> places;
};

std::string scratch_folder(const std::string& scratch) {
  return scratch.empty() ? std::filesystem::temp_directory_path().string() : scratch;
}

}  // namespace

struct ClipsOfPart::State {
  std::string directory, manifest, marker;
  int part;
  std::vector<parts::PartResults::Output> outputs;
  std::size_t next = 0;
  io::ManifestReader reader;

  [[noreturn]] void does_not_fit() const {
    fail("'{}' does not fit '{}'; remove the latter, and do part {} again", manifest, marker, part);
  }
};

ClipsOfPart::ClipsOfPart(const std::string& directory, int part) {
  const std::string folder = parts::part_folder(directory, "clip", part),
                    manifest = io::join_path(folder, "manifest.jsonl");
  state_.reset(new State{directory,
                         manifest,
                         io::join_path(folder, "done.json"),
                         part,
                         parts::need_marker(directory, "clip", part).results.outputs,
                         0,
                         {{manifest}, fail_on}});
}

ClipsOfPart::~ClipsOfPart() = default;

/// The folder may have been moved, so files are named as in the part's marker.
std::optional<io::Record> ClipsOfPart::next() {
  State& part = *state_;
  while (auto record = part.reader.next()) {
    if (record->kind != "shard") continue;
    if (part.next == part.outputs.size() ||
        io::base_name(record->path()) != io::base_name(part.outputs[part.next].path))
      part.does_not_fit();
    record->json["path"] = io::join_path(part.directory, part.outputs[part.next++].path);
    record->json->erase("columns");  // those that are beside the shard are used
    return record;
  }
  part.reader.streams().check_whole("it is not used");
  if (part.next != part.outputs.size()) part.does_not_fit();
  return std::nullopt;
}

struct LaterSources::State {
  explicit State(const std::string& scratch) : sources(scratch), later(scratch) {}
  io::Sorter sources;    // by hash and place
  io::FirstNames later;  // place of a duplicate -> the first source
};

LaterSources::LaterSources(const std::string& scratch)
    : state_(std::make_unique<State>(scratch_folder(scratch))) {}
LaterSources::~LaterSources() = default;

void LaterSources::add(const io::Record& record) {
  const RecordSources of(record);
  for (std::size_t i = 0; i < of.paths.size(); ++i) {
    std::string packed;
    io::put_ordered_text(packed, of.hashes[i]);
    io::put_ordered(packed, of.places[i], kPlaceBytes);
    state_->sources.add(packed + of.paths[i]);
  }
}

void LaterSources::settle() {
  std::string hash, first;
  std::uint64_t first_place = 0;
  io::Sorter::Stream all = state_->sources.sorted();
  for (std::string_view packed; all.next(packed);) {
    const std::string one = io::take_ordered_text(packed);
    const std::uint64_t place = io::take_ordered(packed, kPlaceBytes);
    if (one != hash) {
      hash = one;
      first = packed;
      first_place = place;
    } else if (place != first_place) {  // not another shard of the same source
      state_->later.put(std::to_string(place), first);
    }
  }
}

void LaterSources::add_all(const std::string& directory) {
  const int parts = parts::count_parts(directory, "clip").value_or(0);
  for (int number = 0; number < parts; ++number) {
    ClipsOfPart part(directory, number);
    while (const auto record = part.next())
      add(*record);
  }
  settle();
}

std::vector<DuplicateSource> LaterSources::mark(io::Record& record) const {
  const RecordSources of(record);
  std::vector<DuplicateSource> duplicates;
  Json hashes = Json::array();
  for (std::size_t i = 0; i < of.paths.size(); ++i) {
    const auto first = state_->later.find(std::to_string(of.places[i]));
    if (!first) continue;
    hashes.push_back(of.hashes[i]);
    duplicates.push_back({of.paths[i], *first, of.hashes[i]});
  }
  if (!hashes.empty()) record.json["duplicate_hashes"] = std::move(hashes);
  return duplicates;
}

bool counts(const io::Record& record) {
  const auto later = record.json->find("duplicate_hashes"), all = record.json->find("sources");
  const std::size_t sources = all == record.json->end() ? 1 : all->size();
  return later == record.json->end() || later->size() < sources;
}

struct ListedClips::State {
  State(const std::string& folder, const std::string& scratch, Later what)
      : directory(folder), which(what), records(scratch, kSortMemory), sources(scratch) {}

  void read();
  void add(const io::Record& record, int part);
  std::optional<io::Record> take(std::string_view packed);

  std::string directory, missing;
  Later which;
  io::Sorter records;  // by place and arrival
  LaterSources sources;
  std::optional<io::Sorter::Stream> stream;
  std::function<void(const DuplicateSource&)> tell;
  std::uint64_t told_of = UINT64_MAX;  // first place of the last record
  int part = 0;
};

void ListedClips::State::read() {
  const auto inputs = parts::part_inputs(directory, "clip");
  if (!inputs) fail("'{}' has no list of parts", directory);
  missing = inputs->message(directory);
  for (int number = 0; number < inputs->parts; ++number) {
    if (std::ranges::binary_search(inputs->missing, number)) continue;
    ClipsOfPart clips(directory, number);
    while (const auto record = clips.next())
      add(*record, number);
  }
  sources.settle();
}

void ListedClips::State::add(const io::Record& record, int number) {
  sources.add(record);
  const RecordSources of(record);
  std::string packed;
  io::put_ordered(packed, *std::ranges::min_element(of.places), kPlaceBytes);
  io::put_ordered(packed, records.records(), kPlaceBytes);
  io::put_ordered(packed, static_cast<std::uint64_t>(number), kPlaceBytes);
  records.add(packed + dump_json(record.json));
}

/// Returns nullopt for a shard that does not count, if such shards are left out.
std::optional<io::Record> ListedClips::State::take(std::string_view packed) {
  packed.remove_prefix(2 * kPlaceBytes);
  part = static_cast<int>(io::take_ordered(packed, kPlaceBytes));
  io::Record record{"shard", parse_json(packed, "a temporary file"),
                    "the parts of '" + directory + "'"};
  // Several shards of the same sources follow each other.
  const std::uint64_t place = RecordSources(record).places.front();
  const bool fresh = std::exchange(told_of, place) != place;
  for (const DuplicateSource& one : sources.mark(record))
    if (tell && fresh) tell(one);
  if (which == Later::left_out && !counts(record)) return std::nullopt;
  return record;
}

bool ListedClips::are_in(const std::string& directory) {
  return parts::read_list(directory).has_value();
}

ListedClips::ListedClips(const std::string& directory, const std::string& scratch, Later later)
    : state_(std::make_unique<State>(directory, scratch_folder(scratch), later)) {
  state_->read();
}

ListedClips::~ListedClips() = default;

void ListedClips::on_duplicate(std::function<void(const DuplicateSource& duplicate)> tell) {
  state_->tell = std::move(tell);
}

std::optional<io::Record> ListedClips::next() {
  if (!state_->stream) state_->stream.emplace(state_->records.sorted());
  for (std::string_view packed; state_->stream->next(packed);)
    if (auto record = state_->take(packed)) return record;
  return std::nullopt;
}

int ListedClips::part() const {
  return state_->part;
}

const std::string& ListedClips::missing() const {
  return state_->missing;
}

DuplicateHashes::DuplicateHashes(const Json& record) {
  const auto list = record.find("duplicate_hashes");
  if (list == record.end() || !list->is_array()) return;
  for (const Json& hash : *list)
    if (hash.is_string()) hashes_.insert(hash.get<std::string>());
}

bool DuplicateHashes::has(const Json& sample) const {
  if (empty() || !sample.is_object()) return false;
  const auto hash = get_string(sample, "source_hash");
  return hash && hashes_.contains(*hash);
}

bool DuplicateHashes::has_text(std::string_view json) const {
  if (empty()) return false;
  try {
    return has(parse_json(json, "json"));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace vfm::shard
