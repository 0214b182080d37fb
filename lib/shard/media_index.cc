// SPDX-License-Identifier: Apache-2.0
#include "shard/media_index.h"

#include <sqlite3.h>

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/remote/address.h"

namespace vfm::shard {

struct MediaIndex::State {
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  std::string path, name;
  io::MappedFile object;  // Must be destroyed after `db`.
  std::unique_ptr<sqlite3, Close> db;
  std::unique_ptr<sqlite3_stmt, Finalize> statement;  // Must be destroyed before `db`.

  std::string why() const { return db ? sqlite3_errmsg(db.get()) : "out of memory"; }

  void open() {
    sqlite3* handle = nullptr;
    const bool far = io::is_remote(path);
    int opened = sqlite3_open_v2(far ? ":memory:" : path.c_str(), &handle,
                                 far ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, nullptr);
    db.reset(handle);
    if (far && opened == SQLITE_OK) {
      object = io::MappedFile(path);
      const auto bytes = static_cast<sqlite3_int64>(object.bytes().size());
      opened = sqlite3_deserialize(
          handle, "main",
          reinterpret_cast<unsigned char*>(const_cast<std::byte*>(object.bytes().data())), bytes,
          bytes, SQLITE_DESERIALIZE_READONLY);
    }
    sqlite3_stmt* made = nullptr;
    if (opened != SQLITE_OK ||
        sqlite3_exec(db.get(), "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;", nullptr,
                     nullptr, nullptr) != SQLITE_OK ||
        sqlite3_prepare_v2(db.get(), "SELECT metadata_json FROM media_metadata WHERE entry_key = ?",
                           -1, &made, nullptr) != SQLITE_OK)
      fail_usage("cannot read '{}', the index of a dataset: {}", path, why());
    statement.reset(made);
  }
};

MediaIndex::MediaIndex(const std::string& directory) : state_(std::make_unique<State>()) {
  state_->path = io::join_path(directory, ".nv-meta/index.sqlite");
  if (!io::file_exists(state_->path))
    fail_usage("'{}' has no .nv-meta/index.sqlite, which vfm-shard writes: sizes are not known",
               directory);
  state_->open();
}

MediaIndex::~MediaIndex() = default;
MediaIndex::MediaIndex(MediaIndex&&) noexcept = default;

Json MediaIndex::find(std::string_view key, std::string_view extension) {
  State& s = *state_;
  s.name.assign(key).append(".").append(extension);
  sqlite3_stmt* const statement = s.statement.get();
  sqlite3_reset(statement);
  sqlite3_bind_text64(statement, 1, s.name.data(), s.name.size(), SQLITE_STATIC, SQLITE_UTF8);
  const int status = sqlite3_step(statement);
  if (status == SQLITE_DONE) return {};
  if (status != SQLITE_ROW) fail("'{}' is damaged: {}", s.path, s.why());
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  const int size = sqlite3_column_bytes(statement, 0);
  return parse_json(std::string(text == nullptr ? "" : text, static_cast<std::size_t>(size)),
                    "'" + s.path + "'");
}

}  // namespace vfm::shard
