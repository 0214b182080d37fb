// SPDX-License-Identifier: Apache-2.0
#include "clip/store/earlier_clips.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/file.h"
#include "io/folder.h"
#include "shard/receipt.h"

namespace vfm::clip {
namespace {

/// Removes the spans, which find() compares, and the size of shards, which does not change clips.
Json of_clips(Json settings) {
  settings.erase("spans");
  settings.erase("shard_bytes");
  return settings;
}

}  // namespace

EarlierClips::EarlierClips(std::string directory, const Json& settings)
    : directory_(std::move(directory)), settings_(of_clips(settings)) {}

bool EarlierClips::is_same(const Json& settings) const {
  return settings.is_object() && of_clips(settings) == settings_;
}

/// Maps the videos of the folder's batches to the batches. Batches that this run writes later are
/// not needed, because a run has no source twice.
void EarlierClips::find_joined() {
  joined_.emplace(directory_);
  for (const io::FolderEntry& entry : io::entries(directory_)) {
    const std::string& file = entry.name;
    if (!file.starts_with(kJoinedName) || !file.ends_with(".json") ||
        file.size() != kJoinedName.size() + 16 + 5)
      continue;
    check_stop();
    try {
      const std::string path = io::join_path(directory_, file);
      const Json index = parse_json(io::read_file(path), path);
      if (!is_same(index.at("settings"))) continue;
      for (const Json& source : index.at("sources"))
        joined_->put(need_string(source, "source_hash", path), file.substr(0, file.size() - 5));
    } catch (const std::exception& error) {
      log_info("{}", error.what());
    }
  }
}

/// Returns nullopt if the settings differ, or if files are missing or changed.
std::optional<EarlierClips::Store> EarlierClips::open(const std::string& name) const {
  const std::string path = io::join_path(directory_, name + ".json");
  if (!io::file_exists(path)) return std::nullopt;
  try {
    Store store{name, parse_json(io::read_file(path), path), {}, {}};
    const Json& index = store.index;
    if (!is_same(index.at("settings"))) return std::nullopt;
    for (const Json& shard : index.at("shards")) {
      const std::string tar = io::join_path(directory_, need_string(shard, "name", path));
      shard::check_written(tar, shard);
      if (io::hash_file(tar) != need_string(shard, "xxh3", path))
        fail("'{}' is not as it was written", tar);
      store.shards.emplace_back(tar);
    }
    if (!index.contains("sources")) {
      Json entry = index;
      for (const char* other : {"kind", "settings", "clips", "shards"})
        entry.erase(other);
      entry["clips"] = index.at("clips");
      need_integer(entry, "clips", path);
      if (const auto spans = get_string(index.at("settings"), "spans")) entry["spans"] = *spans;
      store.entries[need_string(index, "source_hash", path)] = {std::move(entry), 0};
      return store;
    }
    std::int64_t first = 0;
    for (const Json& entry : index.at("sources")) {
      store.entries[need_string(entry, "source_hash", path)] = {entry, first};
      first += need_integer(entry, "clips", path);
    }
    return store;
  } catch (const std::exception& error) {
    log_info("'{}' is not used: {}", path, error.what());
    return std::nullopt;
  }
}

bool EarlierClips::give(const Store& store, std::int64_t first, std::int64_t count,
                        const Take& take) {
  for (const shard::IndexedReader& reader : store.shards) {
    for (; count > 0 && first < reader.samples(); ++first, --count) {
      check_stop();
      shard::Sample sample;
      try {
        sample = reader.read(first);
      } catch (const Error& error) {
        log_info("{}", error.what());
        return false;
      }
      take(sample);
    }
    first -= reader.samples();
  }
  return count == 0;
}

Json EarlierClips::find_in(const Store& store, const ClipSource& source, const std::string& spans,
                           const Take& take) {
  const auto at = store.entries.find(source.hash);
  if (at == store.entries.end()) return nullptr;
  const Json& entry = at->second.json;
  if (entry.contains("failed") || get_string(entry, "spans").value_or("") != spans) return nullptr;
  return give(store, at->second.first, need_integer(entry, "clips", store.name), take) ? entry
                                                                                       : Json();
}

/// Keeps one batch open. Videos are copied in the order of the batches, so each batch is read once.
void EarlierClips::choose(const std::string& name) {
  if (name == last_) return;
  last_ = name;
  store_ = open(name);
}

Json EarlierClips::find(const ClipSource& source, const std::string& spans, const Take& take) {
  const std::lock_guard lock(mutex_);
  if (!joined_) find_joined();
  bool given = false;
  const Take watched = [&](const shard::Sample& sample) {
    given = true;
    take(sample);
  };
  if (const auto name = joined_->find(source.hash)) {
    choose(*name);
    Json entry = store_ ? find_in(*store_, source, spans, watched) : Json();
    if (given || !entry.is_null()) return entry;
  }
  const std::optional<Store> own = open(source.hash.substr(0, 16));
  return own ? find_in(*own, source, spans, take) : Json();
}

}  // namespace vfm::clip
