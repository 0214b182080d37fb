// Shards of the clips of one source, and the common code of all formats.
// SPDX-License-Identifier: Apache-2.0
#include "clip/store/store.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "clip/store/files.h"
#include "clip/store/parts.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "shard/columns.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::clip {
namespace {

class ShardStore : public ClipStore {
 public:
  ShardStore(std::string directory, const std::string& name, Json settings,
             std::uint64_t shard_bytes, bool shared)
      : ClipStore(std::move(directory), name, name + ".json", std::move(settings)),
        shard_bytes_(shard_bytes),
        shared_(shared) {}
  KeptClips begin(bool keep) override;

 private:
  void check_files(const Json& found) const override;
  void write(const shard::Sample& sample) override;
  void end(Json& summary) override;
  std::vector<std::string> own_files(const Json& index, const InUse&) override;
  std::string notes_of_removal(const Json&) const override { return "{\"removed\":true}\n"; }

  std::string shard_path(std::size_t number) const {
    return io::join_path(directory_, fmt::format("{}-{:05}.tar", name_, number));
  }
  std::string notes_path() const override {
    return io::join_path(directory_, "." + name_ + ".settings");
  }
  std::vector<std::string> files_of_shard(std::size_t number) const;
  KeptClips keep_shards();
  void remove_from(std::size_t number) const;
  void end_shard();

  std::uint64_t shard_bytes_;
  bool shared_;
  std::vector<Json> shards_;
  std::optional<shard::Writer> writer_;
};

void ShardStore::check_files(const Json& found) const {
  for (const Json& shard : found.at("shards"))
    shard::check_written(io::join_path(directory_, shard.at("name").get<std::string>()), shard);
}

/// Removes the shards from `number` on, and the temporary files of a killed writer.
void ShardStore::remove_from(std::size_t number) const {
  // Continue after one missing shard, because an earlier removal may have been killed.
  for (int missing = 0; missing < 2; ++number) {
    bool any = false;
    for (const std::string& path : files_of_shard(number)) {
      any = io::remove_file(path) || any;
      any = remove_temporary_of(path) || any;
    }
    missing = any ? 0 : missing + 1;
  }
}

std::vector<std::string> ShardStore::files_of_shard(std::size_t number) const {
  const std::string tar = shard_path(number);
  return {tar, shard::energon_index_path(tar), shard::dali_index_path(tar)};
}

/// The last shard comes first, so that after a kill the remaining shards still begin at 0.
std::vector<std::string> ShardStore::own_files(const Json& index, const InUse&) {
  std::size_t count = 0;
  if (!index.is_null()) {
    for (const Json& shard : index.at("shards"))
      check_own(shard_path(count++), shard.at("bytes").get<std::uint64_t>());
  }
  const auto all_of_shard = [&](std::size_t number) {
    std::vector<std::string> files = shard::column_files(shard_path(number));
    for (std::string& path : files_of_shard(number))
      files.push_back(std::move(path));
    return files;
  };
  for (std::size_t number = count, missing = 0; missing < 2; ++number) {
    const std::vector<std::string> files = all_of_shard(number);
    const bool any = std::any_of(files.begin(), files.end(), [&](const std::string& path) {
      return io::file_exists(path) || has_temporary(path);
    });
    missing = any ? 0 : missing + 1;
    if (any) count = number + 1;
  }
  std::vector<std::string> files;
  while (count > 0)
    for (std::string& path : all_of_shard(--count))
      files.push_back(std::move(path));
  files.push_back(ClipParts::path_of(directory_, name_));
  return files;
}

KeptClips ShardStore::begin(bool keep) {
  shards_.clear();
  writer_.reset();
  samples_ = 0;
  if (shared_) return keep ? keep_shards() : KeptClips();
  const std::string text = dump_json(settings_) + "\n";
  const bool any_notes = io::file_exists(notes_path());
  const bool same = any_notes && io::read_file(notes_path()) == text;
  const bool any_index = io::remove_file(index_path());
  if (keep && same) return keep_shards();
  // In a bucket, each look for a file is a request, and without notes and index there are no files.
  if (any_notes || any_index || !io::is_bucket(directory_)) remove_from(0);
  io::write_file(notes_path(), text);
  return {};
}

KeptClips ShardStore::keep_shards() {
  KeptClips kept;
  for (std::size_t number = 0;; ++number) {
    const std::string path = shard_path(number);
    if (!io::file_exists(path)) break;
    try {
      const shard::IndexedReader reader(path);
      KeptClips clips;
      for (std::int64_t i = 0; i < reader.samples(); ++i) {
        const shard::Sample sample = reader.read(i);
        const Json facts = parse_json(*sample.find("json"), sample.key);
        clips.push_back({need_integer(facts, "pts_begin", sample.key),
                         need_integer(facts, "pts_end", sample.key), sample.key});
      }
      Json shard;
      shard["name"] = io::base_name(path);
      shard["samples"] = reader.samples();
      shard["bytes"] = io::File::open_read(path).size();
      shard["xxh3"] = io::hash_file(path);
      kept.insert(kept.end(), clips.begin(), clips.end());
      shards_.push_back(std::move(shard));
    } catch (const Error& error) {
      log_info("'{}' is remade: {}", path, error.what());
      break;
    }
  }
  if (!shared_) remove_from(shards_.size());
  return kept;
}

void ShardStore::write(const shard::Sample& sample) {
  if (writer_ && writer_->bytes() + shard::sample_bytes(shard::view_of(sample)) > shard_bytes_)
    end_shard();
  if (!writer_) writer_.emplace(shard_path(shards_.size()));
  writer_->add(sample);
}

void ShardStore::end_shard() {
  if (!writer_) return;
  Json shard = writer_->finish();
  writer_.reset();
  shards_.push_back({{"name", io::base_name(shard.at("path").get<std::string>())},
                     {"samples", shard.at("samples")},
                     {"bytes", shard.at("bytes")},
                     {"xxh3", shard.at("xxh3")}});
}

void ShardStore::end(Json& summary) {
  end_shard();
  summary["settings"] = settings_;
  summary["clips"] = samples_;
  summary["shards"] = shards_;
}

}  // namespace

ClipStore::ClipStore(std::string directory, std::string name, const std::string& index,
                     Json settings)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      settings_(std::move(settings)),
      receipt_(io::join_path(directory_, index), "settings", settings_) {}

void ClipStore::check(const Json& found) const {
  need_integer(found, "clips", "it");
  faults(found, "");
  check_files(found);
}

Json ClipStore::find_or_hold(bool redo) {
  Json found = receipt_.find_or_hold([this](const Json& json) { check(json); }, redo);
  if (!found.is_null()) end_notes();
  return found;
}

Json ClipStore::hold_and_find() {
  return receipt_.hold_and_find([this](const Json& json) { check(json); });
}

void ClipStore::add_kept() {
  write_kept();
  ++samples_;
}

void ClipStore::add(const shard::Sample& sample) {
  write(sample);
  ++samples_;
}

void ClipStore::check_own(const std::string& path, std::optional<std::uint64_t> bytes) {
  if (io::is_bucket(path)) {
    const std::optional<std::uint64_t> there = io::size_of(path);
    if (there && bytes && *there != *bytes)
      fail("'{}' is not the object that vfm-clip wrote there; remove it by hand", path);
    return;
  }
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return;
    fail_errno(errno, "cannot look at '{}'", path);
  }
  if (!S_ISREG(facts.st_mode) || (bytes && static_cast<std::uint64_t>(facts.st_size) != *bytes))
    fail("'{}' is not the file that vfm-clip wrote there; remove it by hand", path);
}

static std::string temporary_of(const std::string& path) {
  return io::join_path(io::dir_name(path), "." + io::base_name(path) + ".tmp");
}

bool ClipStore::has_temporary(const std::string& path) {
  return !io::is_bucket(path) && io::file_exists(temporary_of(path));
}

bool ClipStore::remove_temporary_of(const std::string& path) {
  return !io::is_bucket(path) && io::remove_file(temporary_of(path));
}

void ClipStore::remove(const InUse& in_use) {
  const io::AtomicFile held(index_path());
  check_own(index_path());
  Json index;
  if (io::file_exists(index_path())) index = parse_json(io::read_file(index_path()), index_path());
  const std::vector<std::string> files = own_files(index, in_use);
  for (const std::string& path : files) {
    check_own(path);
    // AtomicFile throws if another program is writing this file of a column.
    if (path.ends_with(".json") && has_temporary(path)) io::AtomicFile{path};
  }
  if (!index.is_null()) io::write_file(notes_path(), notes_of_removal(index));
  io::remove_file(index_path());
  io::sync_directory(directory_);
  for (const std::string& path : files) {
    io::remove_file(path);
    remove_temporary_of(path);
  }
  io::sync_directory(directory_);
  end_notes();
}

void ClipStore::end_notes() {
  io::remove_file(notes_path());
}

Json ClipStore::finish(Json summary) {
  end(summary);
  // Indentation would enlarge the json of thousands of videos.
  receipt_.write(summary.contains("sources") ? dump_json(summary) + "\n"
                                             : dump_json_pretty(summary));
  end_notes();
  return summary;
}

std::vector<io::Fault> ClipStore::faults(const Json& finished, const std::string& source) {
  const Json& errors = finished.at("errors");
  if (!errors.empty() && errors[0].is_object()) return io::parse_faults(errors);
  std::vector<io::Fault> faults;
  for (const Json& message : errors)
    faults.emplace_back(source, message.get<std::string>(), Cause::decode);
  return faults;
}

std::vector<Json> ClipStore::records(const Json& finished, const std::string& directory) {
  std::vector<Json> records;
  if (const auto list = get_string(finished, "list")) {
    if (finished.at("samples").empty()) return records;
    const std::string path = io::join_path(directory, *list);
    records.push_back({{"kind", "shard"},
                       {"path", path},
                       {"samples", finished.at("clips")},
                       {"bytes", io::File::open_read(path).size()},
                       {"xxh3", io::hash_file(path)}});
    return records;
  }
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

void ClipStore::name_sources(std::vector<Json>& records, const std::vector<ClipSource>& sources) {
  Json paths = Json::array(), hashes = Json::array(), places = Json::array();
  for (const ClipSource& source : sources) {
    if (const auto place = get_integer(source.record, "place")) places.push_back(*place);
    paths.push_back(source.path);
    hashes.push_back(source.hash);
  }
  for (Json& record : records) {
    record.update({{"sources", paths}, {"source_hashes", hashes}});
    if (!places.empty()) record["places"] = places;
  }
}

std::unique_ptr<ClipStore> make_clip_store(ClipFormat format, std::string directory,
                                           const std::string& name, Json settings,
                                           std::uint64_t shard_bytes, bool shared) {
  if (format == ClipFormat::files)
    return std::make_unique<ClipFiles>(std::move(directory), name, std::move(settings));
  return std::make_unique<ShardStore>(std::move(directory), name, std::move(settings), shard_bytes,
                                      shared);
}

}  // namespace vfm::clip
