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
#include "io/store.h"
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

}  // namespace

struct ListedClips::State {
  State(const std::string& folder, const std::string& scratch)
      : directory(folder), records(scratch, kSortMemory), sources(scratch), later(scratch) {}

  void read();
  void read(const std::string& manifest, int part);
  void add(const io::Record& record, const std::string& path);
  void find_duplicates();
  std::optional<io::Record> take(std::string_view packed);

  std::string directory, missing;
  io::Sorter records;    // by place and arrival
  io::Sorter sources;    // by hash and place
  io::FirstNames later;  // place of a duplicate -> the first source
  std::optional<io::Sorter::Stream> stream;
  std::function<void(const Duplicate&)> tell;
  std::uint64_t told_of = UINT64_MAX;  // first place of the last record
};

void ListedClips::State::read() {
  const auto inputs = parts::part_inputs(directory, "clip");
  if (!inputs) fail("'{}' has no list of parts", directory);
  missing = inputs->message(directory);
  auto gap = inputs->missing.begin();
  int part = 0;
  for (const std::string& manifest : inputs->manifests) {
    for (; gap != inputs->missing.end() && *gap == part; ++gap)
      ++part;
    read(manifest, part++);
  }
  find_duplicates();
}

/// The folder may have been moved, so files are named as in the part's marker.
void ListedClips::State::read(const std::string& manifest, int part) {
  const io::FileStore store(io::join_path(directory, "parts"));
  const std::string name = "clip/" + parts::part_name(part) + "/done.json";
  const auto marker = parts::read_marker(store, name);
  if (!marker) fail("'{}' has disappeared", store.path(name));
  const auto& outputs = marker->results.outputs;
  const auto does_not_fit = [&] {
    fail("'{}' does not fit '{}'; remove the latter, and do part {} again", manifest,
         store.path(name), part);
  };
  std::size_t next = 0;
  io::ManifestReader reader({manifest}, fail_on);
  while (const auto record = reader.next()) {
    if (record->kind != "shard") continue;
    if (next == outputs.size() ||
        io::base_name(record->path()) != io::base_name(outputs[next].path))
      does_not_fit();
    add(*record, io::join_path(directory, outputs[next++].path));
  }
  reader.streams().check_whole("it is not used");
  if (next != outputs.size()) does_not_fit();
}

void ListedClips::State::add(const io::Record& record, const std::string& path) {
  const RecordSources of(record);
  for (std::size_t i = 0; i < of.paths.size(); ++i) {
    std::string packed;
    io::put_ordered_text(packed, of.hashes[i]);
    io::put_ordered(packed, of.places[i], kPlaceBytes);
    sources.add(packed + of.paths[i]);
  }
  Json json = record.json;
  json["path"] = path;
  json.erase("columns");  // those that are beside the shard are used
  std::string packed;
  io::put_ordered(packed, *std::ranges::min_element(of.places), kPlaceBytes);
  io::put_ordered(packed, records.records(), kPlaceBytes);
  records.add(packed + dump_json(json));
}

void ListedClips::State::find_duplicates() {
  std::string hash, first;
  std::uint64_t first_place = 0;
  io::Sorter::Stream all = sources.sorted();
  for (std::string_view packed; all.next(packed);) {
    const std::string one = io::take_ordered_text(packed);
    const std::uint64_t place = io::take_ordered(packed, kPlaceBytes);
    if (one != hash) {
      hash = one;
      first = packed;
      first_place = place;
    } else if (place != first_place) {  // not another shard of the same source
      later.put(std::to_string(place), first);
    }
  }
}

/// Returns nullopt if no source of the record counts.
std::optional<io::Record> ListedClips::State::take(std::string_view packed) {
  packed.remove_prefix(2 * kPlaceBytes);
  io::Record record{"shard", parse_json(packed, "a temporary file"),
                    "the parts of '" + directory + "'"};
  const RecordSources of(record);
  // Several shards of the same sources follow each other.
  const bool fresh = std::exchange(told_of, of.places.front()) != of.places.front();
  Json hashes = Json::array();
  for (std::size_t i = 0; i < of.paths.size(); ++i) {
    const auto first = later.find(std::to_string(of.places[i]));
    if (!first) continue;
    hashes.push_back(of.hashes[i]);
    if (tell && fresh) tell({of.paths[i], *first, of.hashes[i]});
  }
  if (hashes.size() == of.paths.size()) return std::nullopt;
  if (!hashes.empty()) record.json["duplicate_hashes"] = std::move(hashes);
  return record;
}

bool ListedClips::are_in(const std::string& directory) {
  return parts::read_list(directory).has_value();
}

ListedClips::ListedClips(const std::string& directory, const std::string& scratch)
    : state_(std::make_unique<State>(
          directory, scratch.empty() ? std::filesystem::temp_directory_path().string() : scratch)) {
  state_->read();
}

ListedClips::~ListedClips() = default;

void ListedClips::on_duplicate(std::function<void(const Duplicate& duplicate)> tell) {
  state_->tell = std::move(tell);
}

std::optional<io::Record> ListedClips::next() {
  if (!state_->stream) state_->stream.emplace(state_->records.sorted());
  for (std::string_view packed; state_->stream->next(packed);)
    if (auto record = state_->take(packed)) return record;
  return std::nullopt;
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
