// SPDX-License-Identifier: Apache-2.0
#include "shard/energon_index.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/stop.h"
#include "io/atomic_file.h"

namespace vfm::shard {
namespace {

// Copied from Energon's `prepare`, whose readers query these names. The rows of `samples` point to
// headers, the rows of `sample_parts` to data.
constexpr const char* kTables =
    "CREATE TABLE samples (tar_file_id INTEGER NOT NULL, sample_key TEXT NOT NULL UNIQUE, "
    "sample_index INTEGER NOT NULL, byte_offset INTEGER, byte_size INTEGER);"
    "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT, "
    "content_byte_offset INTEGER, content_byte_size INTEGER);"
    "CREATE TABLE media_metadata (entry_key TEXT PRIMARY KEY, metadata_type TEXT NOT NULL, "
    "metadata_json TEXT NOT NULL);"
    "CREATE TABLE media_filters (filter_id INTEGER PRIMARY KEY AUTOINCREMENT, strategy TEXT NOT "
    "NULL, "
    "patterns TEXT, created_at_utc TEXT DEFAULT CURRENT_TIMESTAMP, UNIQUE(strategy, patterns));";
// Created after the rows are inserted, which is faster.
constexpr const char* kIndexes =
    "CREATE INDEX idx_samples_by_tar_and_idx ON samples(tar_file_id, sample_index);"
    "CREATE INDEX idx_sample_parts_seq ON sample_parts(tar_file_id, sample_index, "
    "content_byte_offset);"
    "CREATE INDEX idx_sample_parts_full ON sample_parts(tar_file_id, sample_index, part_name, "
    "content_byte_offset, content_byte_size);";

class Database {
 public:
  Database(const std::string& file, const std::string& name) : name_(name) {
    sqlite3* handle = nullptr;
    const int status = sqlite3_open(file.c_str(), &handle);
    db_.reset(handle);
    if (status != SQLITE_OK) failed();
    // No journal and no sync, because the file has a temporary name until it is complete.
    run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; BEGIN;");
  }
  void run(const char* sql) {
    if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) failed();
  }
  sqlite3* get() const { return db_.get(); }
  [[noreturn]] void failed() const {
    if (db_ && sqlite3_errcode(db_.get()) == SQLITE_FULL)
      fail_output(ENOSPC, "cannot write '{}'", name_);
    fail("cannot write '{}': {}", name_, sqlite3_errmsg(db_.get()));
  }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::string name_;
  std::unique_ptr<sqlite3, Close> db_;
};

class Insert {
 public:
  Insert(Database& db, const char* sql) : db_(db) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(db.get(), sql, -1, &made, nullptr) != SQLITE_OK) db.failed();
    statement_.reset(made);
  }
  Insert& add(std::uint64_t value) {
    sqlite3_bind_int64(statement_.get(), ++bound_, static_cast<sqlite3_int64>(value));
    return *this;
  }
  Insert& add(std::string_view text) {
    sqlite3_bind_text64(statement_.get(), ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
    return *this;
  }
  /// Returns false if the key is already in the table.
  bool done() {
    const int status = sqlite3_step(statement_.get());
    sqlite3_reset(statement_.get());
    bound_ = 0;
    if (status != SQLITE_DONE && status != SQLITE_CONSTRAINT) db_.failed();
    return status == SQLITE_DONE;
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Database& db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

void fill(Database& db, const std::string& directory, const DatasetShards& shards,
          const MediaOf& media, SampleListWriter* list) {
  Insert samples(db, "INSERT INTO samples VALUES (?,?,?,?,?)");
  Insert parts(db, "INSERT INTO sample_parts VALUES (?,?,?,?,?)");
  Insert facts(db, "INSERT INTO media_metadata VALUES (?,?,?)");
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    std::int64_t row = 0;
    const DatasetShard of = shards.at(shard);
    const std::string& path = of.path;
    for_each_indexed(io::join_path(directory, path), [&](const IndexedSample& sample) {
      check_stop();
      const auto index = static_cast<std::uint64_t>(row);
      if (!samples.add(shard).add(sample.key).add(index).add(sample.offset).add(sample.size).done())
        fail("key '{}' comes twice in the dataset, the second time in '{}'", sample.key, path);
      for (const IndexedMember& member : sample.members) {
        parts.add(shard)
            .add(index)
            .add(member.extension)
            .add(member.offset)
            .add(member.size)
            .done();
        const MediaMetadata found = media(shard, row, sample.key, member.extension);
        if (!found.type.empty())
          facts.add(sample.key + "." + member.extension)
              .add(found.type)
              .add(dump_json(found.json))
              .done();
      }
      if (list != nullptr) list->add(sample);
      ++row;
    });
    if (list != nullptr) list->add(of);
  }
}

}  // namespace

void write_energon_index(const std::string& directory, const std::string& path,
                         const DatasetShards& shards, const MediaOf& media,
                         SampleListWriter* list) {
  io::AtomicFile file(path);
  {
    Database db(file.temporary_path(), path);
    db.run(kTables);
    fill(db, directory, shards, media, list);
    db.run(kIndexes);
    db.run("COMMIT;");
  }
  file.commit();
}

}  // namespace vfm::shard
