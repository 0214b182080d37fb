// SPDX-License-Identifier: Apache-2.0
#include "io/first_names.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/philox.h"
#include "io/file.h"
#include "io/packed.h"

namespace vfm::io {

struct FirstNames::Table {
  explicit Table(const std::string& folder) : names(folder), path(join_path(folder, ".vfm-seen")) {
    // SQLite wants a name; it is removed as soon as the file is open.
    std::string name = path + "-XXXXXX";
    const File made(::mkstemp(name.data()), name);
    if (!made) fail_output(errno, "cannot make a temporary file in '{}'", folder);
    sqlite3* handle = nullptr;
    const int status = sqlite3_open(name.c_str(), &handle);
    db.reset(handle);
    if (status == SQLITE_OK)
      // Nobody reads it after this run: no journal, no sync, and one transaction that never ends.
      sqlite3_exec(
          handle,
          "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
          "PRAGMA cache_size=-12288; BEGIN EXCLUSIVE; "
          "CREATE TABLE seen(hash INTEGER PRIMARY KEY, at INTEGER NOT NULL);",
          nullptr, nullptr, nullptr);
    ::unlink(name.c_str());
    prepare(insert, "INSERT OR IGNORE INTO seen VALUES (?1, ?2)");
    prepare(select, "SELECT at FROM seen WHERE hash = ?1");
  }

  std::optional<std::string> put(const std::string& key, const std::string& name) {
    // Two keys of one hash stand side by side.
    for (std::uint64_t hash = random_key(key);; ++hash) {
      const std::uint64_t end = names.size();
      sqlite3_bind_int64(insert.get(), 1, static_cast<sqlite3_int64>(hash));
      sqlite3_bind_int64(insert.get(), 2, static_cast<sqlite3_int64>(end));
      const int status = sqlite3_step(insert.get());
      sqlite3_reset(insert.get());
      if (status != SQLITE_DONE) failed();
      if (sqlite3_changes(db.get()) == 1) {
        std::string record, framed;
        put_text(record, key);
        put_text(record, name);
        put_text(framed, record);
        names.append(framed);
        return std::nullopt;
      }
      sqlite3_bind_int64(select.get(), 1, static_cast<sqlite3_int64>(hash));
      if (sqlite3_step(select.get()) != SQLITE_ROW) failed();
      const auto at = static_cast<std::uint64_t>(sqlite3_column_int64(select.get(), 0));
      sqlite3_reset(select.get());
      constexpr std::size_t kNear = 512;
      ScratchReader reader(names, at, end, kNear);
      std::string_view record;
      reader.text(record);
      if (take_text(record) == key) return std::string(take_text(record));
    }
  }

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void prepare(Statement& statement, const char* sql) {
    sqlite3_stmt* made = nullptr;
    if (!db || sqlite3_prepare_v2(db.get(), sql, -1, &made, nullptr) != SQLITE_OK) failed();
    statement.reset(made);
  }
  [[noreturn]] void failed() const {
    if (db && sqlite3_errcode(db.get()) == SQLITE_FULL)
      fail_output(ENOSPC, "cannot write '{}'", path);
    fail("cannot write '{}': {}", path, db ? sqlite3_errmsg(db.get()) : "no memory");
  }

  ScratchFile names;  // keys and names
  std::string path;   // for messages
  std::unique_ptr<sqlite3, Close> db;
  Statement insert, select;
};

FirstNames::FirstNames(std::string folder, std::size_t in_memory)
    : folder_(std::move(folder)), in_memory_(in_memory) {}
FirstNames::~FirstNames() = default;
FirstNames::FirstNames(FirstNames&&) noexcept = default;

void FirstNames::to_disk() {
  table_ = std::make_unique<Table>(folder_);
  for (const auto& [key, name] : first_)
    table_->put(key, name);
  first_ = {};
}

std::optional<std::string> FirstNames::put(const std::string& key, const std::string& name) {
  if (!table_ && first_.size() >= in_memory_) to_disk();
  if (table_) return table_->put(key, name);
  const auto [at, fresh] = first_.emplace(key, name);
  if (fresh) return std::nullopt;
  return at->second;
}

}  // namespace vfm::io
