// SPDX-License-Identifier: Apache-2.0
#include "jobs/clip_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "jobs/clip_cutter.h"
#include "shard/reader.h"

namespace vfm::jobs {

ClipStore::ClipStore(std::string directory, std::string name, Json settings,
                     std::uint64_t shard_bytes)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      settings_(std::move(settings)),
      shard_bytes_(shard_bytes) {}

std::string ClipStore::shard_path(std::size_t number) const {
  return io::join_path(directory_, fmt::format("{}-{:05}.tar", name_, number));
}
std::string ClipStore::json_path() const {
  return io::join_path(directory_, name_ + ".json");
}
std::string ClipStore::settings_path() const {
  return io::join_path(directory_, "." + name_ + ".settings");
}

std::optional<Json> ClipStore::finished() const {
  if (!io::file_exists(json_path())) return std::nullopt;
  try {
    Json found = parse_json(io::read_file(json_path()), json_path());
    if (found.at("settings") != settings_) return std::nullopt;
    for (const Json& shard : found.at("shards")) {
      const io::File file =
          io::File::open_read(io::join_path(directory_, shard.at("name").get<std::string>()));
      if (file.size() != shard.at("bytes").get<std::uint64_t>()) return std::nullopt;
    }
    return found;
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& error) {
    log_info("'{}' is made again: {}", json_path(), error.what());
    return std::nullopt;
  }
}

/// Removes the shards from `number` on, and what a killed writer left of the next ones.
void ClipStore::remove_from(std::size_t number) const {
  // One past a gap too: a kill may come between the removals.
  for (int missing = 0; missing < 2; ++number) {
    const std::string tar = shard_path(number);
    bool any = false;
    for (const std::string& path :
         {tar, shard::energon_index_path(tar), shard::dali_index_path(tar)}) {
      any = ::unlink(path.c_str()) == 0 || any;
      const std::string left = io::join_path(directory_, "." + io::base_name(path) + ".tmp");
      any = ::unlink(left.c_str()) == 0 || any;
    }
    missing = any ? 0 : missing + 1;
  }
}

void ClipStore::begin(bool keep) {
  kept_.clear();
  shards_.clear();
  writer_.reset();
  samples_ = 0;
  const std::string text = dump_json(settings_) + "\n";
  const bool same = io::file_exists(settings_path()) && io::read_file(settings_path()) == text;
  ::unlink(json_path().c_str());
  if (keep && same) {
    keep_shards();
  } else {
    remove_from(0);
    io::write_file(settings_path(), text);
  }
}

void ClipStore::keep_shards() {
  for (std::size_t number = 0;; ++number) {
    const std::string path = shard_path(number);
    if (!io::file_exists(path)) break;
    try {
      const shard::IndexedReader reader(path);
      std::map<std::int64_t, Kept> clips;
      for (std::int64_t i = 0; i < reader.samples(); ++i) {
        const shard::Sample sample = reader.read(i);
        const Json facts = parse_json(*sample.find("json"), sample.key);
        clips[need_integer(facts, "pts_begin", sample.key)] = {
            need_integer(facts, "pts_end", sample.key), sample.key};
      }
      Json shard;
      shard["name"] = io::base_name(path);
      shard["samples"] = reader.samples();
      shard["bytes"] = io::File::open_read(path).size();
      shard["xxh3"] = io::hash_file(path);
      kept_.merge(clips);
      shards_.push_back(std::move(shard));
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      log_info("'{}' is made again: {}", path, error.what());
      break;
    }
  }
  remove_from(shards_.size());
}

std::optional<std::int64_t> ClipStore::known_end(std::int64_t pts) const {
  const auto found = kept_.find(pts);
  if (found == kept_.end()) return std::nullopt;
  return found->second.end;
}

void ClipStore::add_kept(const std::string& key) {
  const auto next = kept_.begin();
  if (next == kept_.end() || next->second.key != key) throw StaleClips();
  kept_.erase(next);
  ++samples_;
}

void ClipStore::add(const shard::Sample& sample) {
  if (!kept_.empty()) throw StaleClips();
  shard::SampleView view{sample.key, {}};
  for (const shard::Member& m : sample.members)
    view.members.push_back({m.extension, m.data});
  if (writer_ && writer_->bytes() + shard::sample_bytes(view) > shard_bytes_) end_shard();
  if (!writer_) writer_.emplace(shard_path(shards_.size()));
  writer_->add(sample);
  ++samples_;
}

void ClipStore::end_shard() {
  if (!writer_) return;
  Json shard = writer_->finish();
  writer_.reset();
  shards_.push_back({{"name", io::base_name(shard.at("path").get<std::string>())},
                     {"samples", shard.at("samples")},
                     {"bytes", shard.at("bytes")},
                     {"xxh3", shard.at("xxh3")}});
}

Json ClipStore::finish(Json summary) {
  if (!kept_.empty()) throw StaleClips();
  end_shard();
  summary["settings"] = settings_;
  summary["clips"] = samples_;
  summary["shards"] = shards_;
  io::write_file(json_path(), dump_json_pretty(summary));
  ::unlink(settings_path().c_str());
  return summary;
}

std::vector<Json> ClipStore::records(const Json& finished, const std::string& directory) {
  std::vector<Json> records;
  for (const Json& shard : finished.at("shards")) {
    const std::string path = io::join_path(directory, shard.at("name").get<std::string>());
    records.push_back({{"kind", "shard"},
                       {"path", path},
                       {"samples", shard.at("samples")},
                       {"bytes", shard.at("bytes")},
                       {"xxh3", shard.at("xxh3")}});
  }
  return records;
}

}  // namespace vfm::jobs
