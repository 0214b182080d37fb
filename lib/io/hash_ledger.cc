// SPDX-License-Identifier: Apache-2.0
#include "io/hash_ledger.h"

#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/philox.h"
#include "io/remote/remote_file.h"

namespace vfm::io {
namespace {

constexpr std::size_t kMostPending = 1000;
constexpr std::uint64_t kMostPendingBytes = std::uint64_t{1} << 30;
constexpr std::int64_t kSettled = 2'000'000'000;  // ns; FAT has times in steps of 2 s.
constexpr int kPatience = 10'000;                 // ms to wait for another program's lock.
constexpr int kApplication = 0x76666d6c;          // "vfml"
constexpr int kVersion = 1;

/// The ledger is replaced.
struct Damaged {
  std::string why;
};
/// The ledger stays as it is, and is not used.
struct Unusable {
  std::string why;
};

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Returns true if any later change of the file changes its times, even if they are coarse.
bool is_settled(const FileState& state) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  return state.ctime_ns < now - kSettled && state.mtime_ns < now - kSettled;
}

sqlite3_int64 as_column(std::uint64_t value) {
  return static_cast<sqlite3_int64>(value);
}

}  // namespace

FileState FileState::of(const File& file) {
  if (const RemoteFile* object = file.remote())
    return {.bytes = object->size(), .inode = random_key(object->version())};
  struct stat facts {};
  if (::fstat(file.fd(), &facts) != 0) fail_errno(errno, "cannot look at '{}'", file.path());
  return {.bytes = static_cast<std::uint64_t>(facts.st_size),
          .inode = facts.st_ino,
          .device = facts.st_dev,
          .mtime_ns = nanoseconds(facts.st_mtim),
          .ctime_ns = nanoseconds(facts.st_ctim)};
}

std::string HashLedger::row_sum(const std::string& path, const FileState& s,
                                const std::string& hash) {
  return hash_hex(fmt::format("{} {} {} {} {} {} {}", s.bytes, s.inode, s.device, s.mtime_ns,
                              s.ctime_ns, hash, path))
      .substr(0, 16);
}

struct HashLedger::Table {
  explicit Table(const std::string& path) {
    sqlite3* handle = nullptr;
    const int status =
        sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    db.reset(handle);
    if (status != SQLITE_OK) failed(status);
    sqlite3_busy_timeout(handle, kPatience);
    // A file that this or another program has just made is empty.
    if (number("PRAGMA page_count") == 0) begin();
    if (number("PRAGMA application_id") != kApplication ||
        number("PRAGMA user_version") != kVersion)
      throw Damaged{"it is not a ledger of this version"};
    prepare(select,
            "SELECT bytes, inode, device, mtime, ctime, hash, sum FROM files WHERE path = ?1");
    prepare(insert, "INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  }

  /// One transaction, so that a killed program leaves an empty file.
  void begin() {
    run("BEGIN IMMEDIATE");
    if (number("PRAGMA user_version") == 0)
      run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={};"
                      "CREATE TABLE files(path TEXT PRIMARY KEY, bytes INTEGER, inode INTEGER, "
                      "device INTEGER, mtime INTEGER, ctime INTEGER, hash TEXT, sum TEXT) "
                      "WITHOUT ROWID",
                      kApplication, kVersion)
              .c_str());
    run("COMMIT");
  }

  /// The file may have changed.
  std::optional<Row> find(const std::string& path) {
    const Reset reset{select.get()};
    bind(select, 1, path);
    if (!step(select)) return std::nullopt;
    const auto number_at = [&](int column) { return sqlite3_column_int64(select.get(), column); };
    Row row{path,
            {.bytes = static_cast<std::uint64_t>(number_at(0)),
             .inode = static_cast<std::uint64_t>(number_at(1)),
             .device = static_cast<std::uint64_t>(number_at(2)),
             .mtime_ns = number_at(3),
             .ctime_ns = number_at(4)},
            text_at(select, 5)};
    if (text_at(select, 6) != row_sum(row.path, row.state, row.hash))
      throw Damaged{fmt::format("the row of '{}' is not as it was written", path)};
    return row;
  }

  void write(const std::vector<Row>& rows) {
    run("BEGIN IMMEDIATE");
    for (const Row& row : rows) {
      const Reset reset{insert.get()};
      bind(insert, 1, row.path);
      sqlite3_bind_int64(insert.get(), 2, as_column(row.state.bytes));
      sqlite3_bind_int64(insert.get(), 3, as_column(row.state.inode));
      sqlite3_bind_int64(insert.get(), 4, as_column(row.state.device));
      sqlite3_bind_int64(insert.get(), 5, row.state.mtime_ns);
      sqlite3_bind_int64(insert.get(), 6, row.state.ctime_ns);
      bind(insert, 7, row.hash);
      const std::string sum = row_sum(row.path, row.state, row.hash);
      bind(insert, 8, sum);
      step(insert);
    }
    run("COMMIT");
  }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;
  /// Ends a statement and releases its lock.
  struct Reset {
    sqlite3_stmt* statement;
    ~Reset() { sqlite3_reset(statement); }
  };

  /// `text` must stay valid until step().
  static void bind(const Statement& statement, int place, const std::string& text) {
    sqlite3_bind_text(statement.get(), place, text.data(), static_cast<int>(text.size()),
                      SQLITE_STATIC);
  }
  static std::string text_at(const Statement& statement, int column) {
    const auto* text = sqlite3_column_text(statement.get(), column);
    return text ? reinterpret_cast<const char*>(text) : "";
  }
  bool step(const Statement& statement) {
    const int status = sqlite3_step(statement.get());
    if (status != SQLITE_ROW && status != SQLITE_DONE) failed(status);
    return status == SQLITE_ROW;
  }
  std::int64_t number(const char* sql) {
    Statement statement;
    prepare(statement, sql);
    return step(statement) ? sqlite3_column_int64(statement.get(), 0) : 0;
  }
  void run(const char* sql) {
    const int status = sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr);
    if (status != SQLITE_OK) failed(status);
  }
  void prepare(Statement& statement, const char* sql) {
    sqlite3_stmt* made = nullptr;
    const int status = sqlite3_prepare_v2(db.get(), sql, -1, &made, nullptr);
    statement.reset(made);
    if (status != SQLITE_OK) failed(status);
  }
  [[noreturn]] void failed(int status) const {
    const std::string why = db ? sqlite3_errmsg(db.get()) : "no memory";
    // The statements here are valid, so SQLITE_ERROR means that the tables are not those of a
    // ledger.
    if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB || status == SQLITE_ERROR)
      throw Damaged{why};
    throw Unusable{why};
  }

  std::unique_ptr<sqlite3, Close> db;
  Statement select, insert;
};

HashLedger::HashLedger(std::string path) : file_(std::move(path)) {}

HashLedger::~HashLedger() {
  try {
    finish();
  } catch (const Stopped&) {  // The rows that did not go to the bucket are made again.
  }
}

/// Calls `use` with the table. If there is no table and `make` is set, makes one. Handles all
/// errors of the ledger, after which `use` may be undone or half done.
template <class Use>
void HashLedger::with_table(bool make, const Use& use) {
  if (off_) return;
  const std::string& file = file_.local();
  try {
    if (!table_) {
      struct stat facts {};
      const bool there = ::lstat(file.c_str(), &facts) == 0;
      if (!there && !make) return;
      if (there && !S_ISREG(facts.st_mode)) throw Unusable{"it is no regular file"};
      table_ = std::make_unique<Table>(file);
    }
    use(*table_);
  } catch (const Damaged& damaged) {
    log_warning("'{}' is damaged ({}); it is made again, and the files are read again", path(),
                damaged.why);
    table_.reset();
    // The journal goes first, so that SQLite does not apply it to the next ledger.
    ::unlink((file + "-journal").c_str());
    off_ = ::unlink(file.c_str()) != 0 && errno != ENOENT;
  } catch (const Unusable& unusable) {
    log_warning("'{}' cannot be used ({}); files are read instead", path(), unusable.why);
    table_.reset();
    off_ = true;
  }
}

std::optional<std::string> HashLedger::find(const std::string& path, const FileState& state) {
  std::optional<Row> row;
  with_table(false, [&](Table& table) { row = table.find(path); });
  if (!row || row->state != state) return std::nullopt;
  return row->hash;
}

void HashLedger::put(Row&& row) {
  if (off_) return;
  pending_bytes_ += row.state.bytes;
  pending_.push_back(std::move(row));
  if (pending_.size() >= kMostPending || pending_bytes_ >= kMostPendingBytes) write_pending();
}

void HashLedger::write_pending() {
  if (pending_.empty()) return;
  const bool make = pending_.size() >= kLeastFiles || pending_bytes_ >= kLeastBytes;
  with_table(make, [&](Table& table) { table.write(pending_); });
  pending_.clear();
  pending_bytes_ = 0;
}

std::string HashLedger::hash(File& file) {
  if (file.remote() && !file.remote()->stored_hash().empty()) {
    ++files_known_;
    return file.remote()->stored_hash();
  }
  const FileState state = FileState::of(file);
  const bool named = !file.remote() || !file.remote()->version().empty();
  const bool settled = is_settled(state);  // Before the read, which may take long.
  const std::string from_root =
      file.remote() ? file.path() : std::filesystem::absolute(file.path()).string();
  if (const std::optional<std::string> noted = find(from_root, state); noted && named) {
    ++files_known_;
    return *noted;
  }
  std::string hash = hash_file(file);
  ++files_read_;
  if (named && settled && FileState::of(file) == state) put({from_root, state, hash});
  return hash;
}

void HashLedger::finish() {
  write_pending();
  try {
    file_.put();
  } catch (const Error& error) {
    log_warning("{}; files are read again next time", error.what());
  }
}

}  // namespace vfm::io
