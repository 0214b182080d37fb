// SPDX-License-Identifier: Apache-2.0
#include "jobs/columns.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/stop.h"
#include "io/file.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::jobs {
namespace {

constexpr const char* kColumns[] = {"caption", "embed"};

/// One tar, by its index where a fitting one is beside it, else by scanning.
class Cursor {
 public:
  explicit Cursor(const std::string& path) : path_(path) {
    if (io::file_exists(shard::energon_index_path(path))) {
      try {
        indexed_.emplace(path);
        return;
      } catch (const Stopped&) {
        throw;
      } catch (const Error&) {
        // An index that does not fit: the tar itself says what is in it.
      }
    }
    stream_.emplace(path);
  }

  bool next(shard::Sample& sample) {
    if (stream_) return stream_->next(sample);
    if (row_ == indexed_->samples()) return false;
    sample = indexed_->read(row_++);
    return true;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<shard::IndexedReader> indexed_;
  std::optional<shard::StreamReader> stream_;
  std::int64_t row_ = 0;
};

void merge_json(std::string& into, const std::string& more, const std::string& where) {
  const Json b = parse_json(more, where);
  if (!b.is_object()) fail("{} is not an object", where);
  Json a;
  try {
    a = parse_json(into, where);
  } catch (const Error&) {
  }
  if (!a.is_object()) return;  // one sample's own fault: left for whoever reads it to see
  for (const auto& [name, value] : b.items())
    a[name] = value;
  into = dump_json(a);
}

void add_member(shard::Sample& sample, shard::Member&& member) {
  for (shard::Member& present : sample.members) {
    if (present.extension != member.extension) continue;
    if (member.extension == "json")
      merge_json(present.data, member.data, "'" + sample.key + ".json'");
    else
      present.data = std::move(member.data);
    return;
  }
  sample.members.push_back(std::move(member));
}

std::string shard_stem(const std::string& path) {
  for (const std::string_view end : {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz"})
    if (path.ends_with(end)) return path.substr(0, path.size() - end.size());
  return path;
}

}  // namespace

std::string column_tar_path(const std::string& shard, const std::string& column,
                            const std::string& directory) {
  const std::string stem = shard_stem(shard);
  const std::string base = directory.empty() ? stem : io::join_path(directory, io::base_name(stem));
  return fmt::format("{}.{}.tar", base, column);
}

bool is_column_tar(const std::string& path) {
  for (const char* column : kColumns) {
    const std::string end = fmt::format(".{}.tar", column);
    if (path.ends_with(end) && io::file_exists(path.substr(0, path.size() - end.size()) + ".tar"))
      return true;
  }
  return false;
}

void complete_shard(io::Record& record) {
  if (record.json.contains("columns")) return;
  const std::string path = record.path();
  Json columns = {{"clip", path}};
  for (const char* column : kColumns)
    if (const std::string tar = column_tar_path(path, column); io::file_exists(tar))
      columns[column] = tar;
  record.json["columns"] = std::move(columns);
}

namespace {

/// The record that was written with a column, or null.
Json column_record(const std::string& tar) {
  const std::string notes = tar.substr(0, tar.size() - 4) + ".json";
  if (!tar.ends_with(".tar") || !io::file_exists(notes)) return nullptr;
  try {
    return parse_json(io::read_file(notes), notes).at("record");
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    return nullptr;  // not one of ours
  }
}

void check_bytes(const std::string& tar, const Json& said) {
  if (!said.is_object()) return;
  const auto bytes = get_integer(said, "bytes");
  const auto hash = get_string(said, "xxh3");
  const auto size = static_cast<std::int64_t>(io::File::open_read(tar).size());
  if (bytes && *bytes != size)
    fail("'{}' is not as it was written: it has {} bytes, its record says {}", tar, size, *bytes);
  if (hash && io::hash_file(tar) != *hash)
    fail("'{}' is not as it was written: its xxh3 is not {}", tar, *hash);
}

}  // namespace

void check_shard_bytes(const io::Record& record) {
  check_bytes(record.path(), record.json);
  for (const std::string& tar : io::column_tars(record))
    if (tar != record.path()) check_bytes(tar, column_record(tar));
}

std::string column_key(const std::string& key) {
  return shard::valid_key(key) ? key : hash_hex(key);
}

struct JoinedReader::State {
  std::vector<Cursor> cursors;
  std::unordered_set<std::string> keys;
  std::vector<std::string> repeated;

  bool next_first(shard::Sample& sample) {
    while (cursors.front().next(sample)) {
      sample.key = column_key(sample.key);
      if (keys.insert(sample.key).second) return true;
      repeated.push_back(sample.key);
    }
    return false;
  }
};

JoinedReader::JoinedReader(const std::vector<std::string>& tars)
    : state_(std::make_unique<State>()) {
  for (const std::string& tar : tars)
    state_->cursors.emplace_back(tar);
}
JoinedReader::~JoinedReader() = default;
JoinedReader::JoinedReader(JoinedReader&&) noexcept = default;

const std::vector<std::string>& JoinedReader::repeated() const {
  return state_->repeated;
}

bool JoinedReader::next(shard::Sample& sample) {
  std::vector<Cursor>& cursors = state_->cursors;
  const bool more = state_->next_first(sample);
  for (std::size_t i = 1; i < cursors.size(); ++i) {
    shard::Sample part;
    const bool has = cursors[i].next(part);
    if (has != more || (more && column_key(part.key) != sample.key))
      fail("'{}' does not have the samples of '{}' in the same order; make it again",
           cursors[i].path(), cursors.front().path());
    for (shard::Member& member : part.members)
      add_member(sample, std::move(member));
  }
  return more;
}

}  // namespace vfm::jobs
