// SPDX-License-Identifier: Apache-2.0
#include "shard/columns.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/kept_objects.h"
#include "io/late_files.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/zstd_reader.h"
#include "shard/media_members.h"
#include "shard/reader.h"
#include "shard/receipt.h"
#include "shard/tar_file.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

constexpr const char* kColumns[] = {"caption", "embed", "score"};

/// Reads one tar: by its index if the index beside it fits, else from the beginning.
class Cursor {
 public:
  Cursor(const std::string& path, const ReadLimits& limits) : path_(path) {
    if (has_index(path)) {
      try {
        indexed_.emplace(path, limits);
        return;
      } catch (const Error&) {
        // The index does not fit the tar.
      }
    }
    stream_.emplace(path, limits);
  }

  /// Returns false at the end. Throws Error on damage after which no sample can be found.
  bool next(Sample& sample) {
    if (stream_) return stream_->next(sample);
    while (row_ < indexed_->samples()) {
      try {
        sample = indexed_->read(row_++);
        return true;
      } catch (const Error& error) {
        refused_.push_back({indexed_->key(row_ - 1), error.what(),
                            error.cause() == Cause::other ? Cause::format : error.cause()});
      }
    }
    return false;
  }
  const std::string& path() const { return path_; }
  const std::vector<Refused>& refused() const { return stream_ ? stream_->refused() : refused_; }

 private:
  std::string path_;
  std::optional<IndexedReader> indexed_;
  std::optional<StreamReader> stream_;
  std::int64_t row_ = 0;
  std::vector<Refused> refused_;  // Refused by `indexed_`.
};

void merge_json(std::string& into, const std::string& more, const std::string& where) {
  const Json b = parse_json(more, where);
  if (!b.is_object()) fail("{} is not an object", where);
  Json a;
  try {
    a = parse_json(into, where);
  } catch (const Error&) {
  }
  if (!a.is_object()) return;  // Only this sample is damaged, and its reader reports it.
  put_members(a, b);
  into = dump_json(a);
}

void add_member(Sample& sample, Member&& member) {
  for (Member& present : sample.members) {
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
  for (const std::string_view end :
       {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz", ".files"})
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

std::vector<std::string> column_files(const std::string& shard) {
  std::vector<std::string> files;
  for (const char* column : kColumns) {
    const std::string tar = column_tar_path(shard, column);
    files.insert(files.end(), {receipt_path(tar), tar, energon_index_path(tar)});
  }
  // Paid answers of a column that is not finished (columns/caption/paid_answers.h).
  files.push_back(shard_stem(shard) + ".caption.answers.jsonl");
  return files;
}

bool is_column_tar(const std::string& path) {
  const std::string tar = plain_tar_path(path);
  for (const char* column : kColumns) {
    const std::string end = fmt::format(".{}.tar", column);
    if (!tar.ends_with(end)) continue;
    const std::string stem = tar.substr(0, tar.size() - end.size());
    for (const char* of : {".tar", ".files", ".tar.zst"})
      if (io::file_exists(stem + of)) return true;
  }
  return false;
}

namespace {

/// Parts of vfm-clip may have been done on other hosts.
bool is_of_part(const io::Record& record) {
  return record.json->contains("place") || record.json->contains("places");
}

/// `said` is an object with the "bytes" of the tar, if they are known. `where` is what says so.
void check_size(const std::string& tar, const Json& said, const std::string& where) {
  const auto bytes = get_integer(said, "bytes");
  const auto size = static_cast<std::int64_t>(open_tar(tar).size());
  if (bytes && *bytes != size)
    fail_as(Cause::format, "'{}' is not as it was written: it has {} bytes, {} says {}", tar, size,
            where, *bytes);
}

}  // namespace

void complete_shard(io::Record& record) {
  if (record.json->contains("columns")) return;
  const std::string path = record.path();
  if (is_of_part(record))
    io::look_until_seen(input_limits().timeout,
                        [&] { check_size(path, record.json, "its record"); });
  Json columns = {{"clip", path}};
  std::array<std::string, std::size(kColumns)> tars;
  io::for_each_at_once(tars.size(), io::requests_at_once(path), [&](std::size_t i) {
    std::string tar = column_tar_path(path, kColumns[i]);
    if (io::file_exists(tar))
      tars[i] = tar;
    else if (io::is_zstd_name(path) && io::file_exists(tar.append(io::kZstdEnd)))
      tars[i] = tar;
  });
  for (std::size_t i = 0; i < tars.size(); ++i)
    if (!tars[i].empty()) columns[kColumns[i]] = tars[i];
  record.json["columns"] = std::move(columns);
}

namespace {

struct Noted {
  Json said;  // Has "bytes" and "xxh3", or is null.
  std::string where = "its record";
};

/// What a receipt says of a file. One of X.tar.zst has the size of X.tar too, and one of X.tar says
/// nothing of X.tar.zst.
Json said_of(const std::string& tar, Json receipt) {
  const bool compressed = io::is_zstd_name(tar);
  const auto unpacked = receipt.find("tar_bytes");
  if (compressed == (unpacked != receipt.end())) return receipt;
  return compressed ? Json() : Json{{"bytes", *unpacked}};
}

/// Reads "X.json" beside "X.tar", which columns and shards of datasets have, or the "H.json" of
/// vfm-clip beside "H-00000.tar".
Noted noted_beside(const std::string& tar) {
  Noted noted;
  if (!plain_tar_path(tar).ends_with(".tar")) return noted;
  std::string notes = receipt_path(tar);
  const bool own = io::file_exists(notes);
  const std::string stem = shard_stem(tar);
  const std::size_t dash = stem.find_last_not_of("0123456789");
  if (!own && dash != std::string::npos && stem[dash] == '-')
    notes = stem.substr(0, dash) + ".json";
  if (!own && !io::file_exists(notes)) return noted;
  noted.where = fmt::format("'{}'", notes);
  try {
    Json found = parse_json(io::read_file(notes), notes);
    if (own) {
      const bool of_dataset = found.value("kind", "") == "shard";
      noted.said = said_of(tar, of_dataset ? found : found.at("record"));
      return noted;
    }
    for (Json& shard : found.at("shards"))
      if (shard.at("name") == io::base_name(tar)) noted.said = std::move(shard);
  } catch (const std::exception&) {
    noted.said = nullptr;  // not our record
  }
  return noted;
}

void check_bytes(const std::string& tar, const Noted& noted) {
  if (!noted.said.is_object()) return;
  check_size(tar, noted.said, noted.where);
  const auto hash = get_string(noted.said, "xxh3");
  if (hash && io::hash_file(tar) != *hash)
    fail_as(Cause::format, "'{}' is not as it was written: its xxh3 is not {}, as {} says", tar,
            *hash, noted.where);
}

Noted noted_of(const io::Record& record, const std::string& tar) {
  const bool says = record.json->contains("xxh3") || record.json->contains("bytes");
  return tar == record.path() && says ? Noted{record.json} : noted_beside(tar);
}

}  // namespace

void check_shard_bytes(const io::Record& record) {
  std::vector<std::string> tars{record.path()};
  for (std::string& tar : io::column_tars(record))
    if (tar != tars[0]) tars.push_back(std::move(tar));
  for (const std::string& tar : tars) {
    const auto check = [&] {
      try {
        check_bytes(tar, noted_of(record, tar));
      } catch (const Error&) {
        io::KeptObjects::forget(tar);
        throw;
      }
    };
    is_of_part(record) ? io::look_until_seen(input_limits().timeout, check) : check();
  }
}

std::string tars_version(const io::Record& record) {
  std::string version;
  for (const std::string& tar : io::column_tars(record)) {
    const io::File file = open_tar(tar);
    const Noted noted = noted_of(record, tar);
    std::string hash;
    if (noted.said.is_object()) hash = get_string(noted.said, "xxh3").value_or("");
    if (hash.empty() && file.remote())
      hash = file.remote()->version();
    else if (hash.empty())
      hash = std::to_string(std::filesystem::last_write_time(tar).time_since_epoch().count());
    version += fmt::format("{} {} {}\n", io::base_name(tar), file.size(), hash);
  }
  return version;
}

std::string column_key(const std::string& key) {
  return valid_key(key) ? key : hash_hex(key);
}

void say_dotted_media(const std::string& tar, std::string_view key, std::string_view extension) {
  static std::atomic<bool> said{false};
  if (extension.find('.') == std::string_view::npos || !is_media_extension(extension)) return;
  if (said.exchange(true)) return;
  log_warning(
      "'{0}.{1}' of '{2}' is member '{1}' of sample '{0}': names are cut at the first dot, as "
      "WebDataset cuts them; if it is a sample of its own, rename it",
      key, extension, tar);
}

struct JoinedReader::State {
  std::vector<Cursor> cursors;
  std::vector<std::size_t> reported;  // For each cursor the number of refused samples in `faults`.
  std::unordered_set<std::string> keys;   // Keys of returned samples.
  std::unordered_set<std::string> lacks;  // Refused in the first tar. The columns may have them.
  std::vector<io::Fault> faults;
  bool ended = false;  // The tar is damaged here.

  /// Reads the next sample of a tar and gives it its column_key(). `original` is the key in the tar
  /// if this differs, else "".
  bool read(std::size_t i, Sample& sample, std::string& original) {
    bool more = false;
    try {
      more = cursors[i].next(sample);
    } catch (const Error& error) {
      faults.emplace_back(cursors[i].path(), error, Cause::format);
      ended = true;
    }
    for (std::size_t& n = reported[i]; n < cursors[i].refused().size(); ++n) {
      const Refused& refused = cursors[i].refused()[n];
      faults.emplace_back(cursors[i].path(), refused.why, refused.cause);
      if (i == 0 && !refused.key.empty()) lacks.insert(column_key(refused.key));
    }
    if (!more) return false;
    for (const Member& member : sample.members)
      say_dotted_media(cursors[i].path(), sample.key, member.extension);
    original.clear();
    if (valid_key(sample.key)) return true;
    original = sample.key;
    sample.key = column_key(original);
    return true;
  }

  bool next_first(Sample& sample, std::string& original) {
    while (read(0, sample, original)) {
      if (keys.insert(sample.key).second) return true;
      faults.push_back({sample_name(sample.key, cursors[0].path()),
                        "the key comes twice in its shard; the first sample is kept",
                        Cause::duplicate});
    }
    return false;
  }

  bool next_column(std::size_t i, Sample& part) {
    std::string original;
    bool more = read(i, part, original);
    while (more && lacks.contains(part.key))
      more = read(i, part, original);
    return more;
  }

  bool next(Sample& sample) {
    std::string original;
    const bool more = next_first(sample, original);
    if (ended) return false;
    if (more && !original.empty())
      add_member(sample, {"json", dump_json({{"original_key", original}})});
    for (std::size_t i = 1; i < cursors.size(); ++i) {
      Sample part;
      const bool has = next_column(i, part);
      if (ended) return false;
      if (has != more || (more && part.key != sample.key))
        fail("'{}' does not have the samples of '{}' in the same order; remake it",
             cursors[i].path(), cursors.front().path());
      for (Member& member : part.members)
        add_member(sample, std::move(member));
    }
    return more;
  }
};

JoinedReader::JoinedReader(const std::vector<std::string>& tars, const ReadLimits& limits)
    : state_(std::make_unique<State>()) {
  for (const std::string& tar : tars)
    state_->cursors.emplace_back(tar, limits);
  state_->reported.resize(tars.size());
}
JoinedReader::~JoinedReader() = default;
JoinedReader::JoinedReader(JoinedReader&&) noexcept = default;

const std::vector<io::Fault>& JoinedReader::faults() const {
  return state_->faults;
}

bool JoinedReader::any_refused() const {
  return std::ranges::any_of(state_->reported, [](std::size_t count) { return count > 0; });
}

bool JoinedReader::next(Sample& sample) {
  return !state_->ended && state_->next(sample);
}

}  // namespace vfm::shard
