// SPDX-License-Identifier: Apache-2.0
#include "io/first_names.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/philox.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/packed.h"

namespace vfm::io {

struct FirstNames::Table {
  explicit Table(const std::string& folder)
      : names(folder), path(join_path(scratch_folder_of(folder), ".vfm-seen")) {
    open(folder);
    run("CREATE TABLE seen(hash INTEGER PRIMARY KEY, at INTEGER NOT NULL)");
    prepare(insert, "INSERT OR IGNORE INTO seen VALUES (?1, ?2)");
    prepare(select, "SELECT at FROM seen WHERE hash = ?1");
  }

  /// SQLite needs a name until it opens the file at the first statement. Then the name is removed.
  void open(const std::string& folder) {
    std::string name = path + "-XXXXXX";
    const File made(::mkostemp(name.data(), O_CLOEXEC), name);
    if (!made) fail_output(errno, "cannot make a temporary file in '{}'", folder);
    struct Remove {
      const std::string& name;
      ~Remove() { ::unlink(name.c_str()); }
    } const at_the_end{name};
    sqlite3* handle = nullptr;
    const int status = sqlite3_open(name.c_str(), &handle);
    db.reset(handle);
    if (status != SQLITE_OK) failed();
    // The file is not used after this run, so it needs no journal, no sync and no commit.
    run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
        "PRAGMA cache_size=-12288; BEGIN EXCLUSIVE");
  }

  std::optional<std::string> put(const std::string& key, const std::string& name) {
    // If another key has the same hash, the next number is tried.
    for (std::uint64_t hash = random_key(key);; ++hash) {
      sqlite3_bind_int64(insert.get(), 1, static_cast<sqlite3_int64>(hash));
      sqlite3_bind_int64(insert.get(), 2, static_cast<sqlite3_int64>(names.size()));
      const int status = sqlite3_step(insert.get());
      sqlite3_reset(insert.get());
      if (status != SQLITE_DONE) failed();
      if (sqlite3_changes(db.get()) == 1) {
        std::string record;
        put_text(record, key);
        put_text(record, name);
        names.append_text(record);
        return std::nullopt;
      }
      if (std::optional<std::string> first = name_at(*place_of(hash), key)) return first;
    }
  }

  std::optional<std::string> find(const std::string& key) const {
    for (std::uint64_t hash = random_key(key);; ++hash) {
      const std::optional<std::uint64_t> place = place_of(hash);
      if (!place) return std::nullopt;
      if (std::optional<std::string> first = name_at(*place, key)) return first;
    }
  }

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  std::optional<std::uint64_t> place_of(std::uint64_t hash) const {
    sqlite3_bind_int64(select.get(), 1, static_cast<sqlite3_int64>(hash));
    const int status = sqlite3_step(select.get());
    if (status != SQLITE_ROW && status != SQLITE_DONE) failed();
    std::optional<std::uint64_t> place;
    if (status == SQLITE_ROW)
      place = static_cast<std::uint64_t>(sqlite3_column_int64(select.get(), 0));
    sqlite3_reset(select.get());
    return place;
  }
  /// Returns the name of the record at `place`, or nullopt if the record is of another key.
  std::optional<std::string> name_at(std::uint64_t place, const std::string& key) const {
    constexpr std::size_t kNear = 512;
    ScratchReader reader(names, place, names.size(), kNear);
    std::string_view record;
    reader.text(record);
    if (take_text(record) != key) return std::nullopt;
    return std::string(take_text(record));
  }
  void run(const char* sql) {
    if (sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) failed();
  }
  void prepare(Statement& statement, const char* sql) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(db.get(), sql, -1, &made, nullptr) != SQLITE_OK) failed();
    statement.reset(made);
  }
  [[noreturn]] void failed() const {
    if (db && sqlite3_errcode(db.get()) == SQLITE_FULL)
      fail_output(ENOSPC, "cannot write '{}'", path);
    fail("cannot write '{}': {}", path, db ? sqlite3_errmsg(db.get()) : "no memory");
  }

  ScratchFile names;  // Records of (key, name).
  std::string path;
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

std::optional<std::string> FirstNames::find(const std::string& key) const {
  if (table_) return table_->find(key);
  const auto at = first_.find(key);
  if (at == first_.end()) return std::nullopt;
  return at->second;
}

}  // namespace vfm::io
