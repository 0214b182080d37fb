// SPDX-License-Identifier: Apache-2.0
#include "shard/listed_clips.h"

#include <cstdint>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/first_names.h"
#include "io/packed.h"
#include "io/places.h"
#include "io/sorter.h"
#include "parts/clip_list.h"
#include "parts/part_inputs.h"

namespace vfm::shard {
namespace {

/// A record of joined videos names thousands of sources.
constexpr std::size_t kSortMemory = std::size_t{64} << 20;
constexpr int kPlaceBytes = 8;

/// A list and a manifest may have been read in different working folders.
std::string one_name(const std::string& path) {
  return io::is_url(path) ? path : std::filesystem::absolute(path).lexically_normal().string();
}

void fail_on(const io::Fault& fault) {
  fail("{}: {}", fault.input, fault.message);
}

/// Returns the place in the list of each video of a part.
std::unordered_map<std::string, std::uint64_t> places_of(const std::string& directory, int part) {
  std::unordered_map<std::string, std::uint64_t> places;
  io::ManifestReader list({parts::list_path(directory, part)}, fail_on);
  while (const auto video = list.next())
    places[one_name(video->path())] =
        static_cast<std::uint64_t>(need_integer(video->json, "place", video->where));
  return places;
}

/// Returns the strings of "source" or of the list "sources".
std::vector<std::string> texts(const Json& record, const char* one, const char* all) {
  if (const auto list = record.find(all); list != record.end() && list->is_array())
    return list->get<std::vector<std::string>>();
  const auto text = get_string(record, one);
  return text ? std::vector{*text} : std::vector<std::string>();
}

}  // namespace

struct ListedClips::State {
  State(const std::string& folder, const std::string& scratch)
      : directory(folder), records(scratch, kSortMemory), firsts(scratch) {}

  void sort();
  void add(const io::Record& record, const std::unordered_map<std::string, std::uint64_t>& places);
  std::optional<io::Record> take(std::string_view packed);

  std::string directory, missing;
  io::Sorter records;     // by place and arrival
  io::FirstNames firsts;  // hash -> first source
  std::optional<io::Sorter::Stream> stream;
  std::function<void(const Duplicate&)> tell;
  std::string told_of;  // first source of the last record with duplicates
};

void ListedClips::State::sort() {
  const auto inputs = parts::part_inputs(directory, "clip");
  if (!inputs) {
    missing = fmt::format("no part of '{}' is complete", directory);
    return;
  }
  missing = inputs->message(directory);
  auto gap = inputs->missing.begin();
  int part = 0;
  for (const std::string& manifest : inputs->manifests) {
    for (; gap != inputs->missing.end() && *gap == part; ++gap)
      ++part;
    const auto places = places_of(directory, part++);
    io::ManifestReader reader({manifest}, fail_on);
    while (const auto record = reader.next())
      if (record->kind == "shard") add(*record, places);
    reader.streams().check_whole("it is not used");
  }
}

void ListedClips::State::add(const io::Record& record,
                             const std::unordered_map<std::string, std::uint64_t>& places) {
  std::uint64_t place = UINT64_MAX;
  for (const std::string& source : texts(record.json, "source", "sources")) {
    const auto found = places.find(one_name(source));
    if (found == places.end())
      fail("{} names '{}', which the list of its part does not have", record.where, source);
    place = std::min(place, found->second);
  }
  Json json = record.json;
  const auto here = [&](Json& name) {
    name = io::join_path(directory, io::name_from(directory, name.get<std::string>()));
  };
  here(json.at("path"));
  if (const auto columns = json.find("columns"); columns != json.end())
    for (Json& column : *columns)
      here(column);
  std::string packed;
  io::put_ordered(packed, place, kPlaceBytes);
  io::put_ordered(packed, records.records(), kPlaceBytes);
  records.add(packed + dump_json(json));
}

/// Returns nullopt if no source of the record counts.
std::optional<io::Record> ListedClips::State::take(std::string_view packed) {
  packed.remove_prefix(2 * kPlaceBytes);
  io::Record record{"shard", parse_json(packed, "a temporary file"),
                    "the parts of '" + directory + "'"};
  const auto sources = texts(record.json, "source", "sources"),
             hashes = texts(record.json, "source_hash", "source_hashes");
  if (sources.size() != hashes.size())
    fail("'{}' has not as many hashes as sources", record.path());
  Json later = Json::array();
  // Several shards of the same sources follow each other.
  const bool fresh = !sources.empty() && std::exchange(told_of, sources.front()) != sources.front();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto first = firsts.put(hashes[i], sources[i]);
    if (!first || *first == sources[i]) continue;
    later.push_back(hashes[i]);
    if (tell && fresh) tell({sources[i], *first, hashes[i]});
  }
  if (!later.empty() && later.size() == sources.size()) return std::nullopt;
  if (!later.empty()) record.json["duplicate_hashes"] = std::move(later);
  return record;
}

bool ListedClips::are_in(const std::string& directory) {
  return parts::read_list(directory).has_value();
}

ListedClips::ListedClips(const std::string& directory, const std::string& scratch)
    : state_(std::make_unique<State>(
          directory, scratch.empty() ? std::filesystem::temp_directory_path().string() : scratch)) {
  state_->sort();
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
  for (std::string& hash : texts(record, "", "duplicate_hashes"))
    hashes_.insert(std::move(hash));
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
