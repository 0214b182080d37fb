// What the contents of files hash to, kept from run to run: so a file that did not change is not
// read again.
//
// A row holds if size, times of change of contents (mtime) and of anything (ctime, which no program
// can set), inode and device are as they were when the file was read. It is a memory aid and no
// record: whatever is wrong with it, files are read instead. SQLite, as several programs may use
// one ledger at once, one that is killed leaves it whole, and a hundred million rows take no
// memory. Each row has a sum of its own, so damage that SQLite does not see is not believed either.
//
// Not noted: a file that was changed in the last two seconds, or while it was read, since its times
// could stay the same after the next change.
//
// Where there is little to remember no ledger is made: it holds inodes and times, so folders of
// equal outputs are equal byte for byte but for it. Thread-safety: one thread at a time; several
// programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"

namespace vfm::io {

/// What tells that a file is the one that it was.
struct FileState {
  std::uint64_t bytes = 0, inode = 0, device = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const FileState&) const = default;

  static FileState of(const File& file);
};

class HashLedger {
 public:
  /// From so many files, or bytes, that were read, there is a ledger.
  static constexpr std::size_t kLeastFiles = 256;
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;

  /// At `path`; nothing is made yet. `check`: all files are read, and one whose contents are others
  /// than its row says, though nothing else tells, is warned of. A ledger that is damaged, or
  /// something else, is warned of and replaced; one that cannot be used is warned of, and left.
  HashLedger(std::string path, bool check);
  /// finish().
  ~HashLedger();
  HashLedger(const HashLedger&) = delete;
  HashLedger& operator=(const HashLedger&) = delete;

  /// hash_file(file) of one that was just opened, by the ledger where that holds. Its path may be
  /// relative: it is noted from the root on, links in it as they are. Throws Error if the file
  /// cannot be read; Stopped.
  std::string hash(File& file);
  /// A number that was noted under a name; 0 if none was.
  std::int64_t note(const std::string& name);
  /// Makes the ledger if there is none, unless it is 0 that was not noted.
  void set_note(const std::string& name, std::int64_t value);
  /// Writes what was noted since the last time. It does so by itself, too, now and then.
  void finish();

  const std::string& path() const { return path_; }
  /// What stands in a row beside its fields. For tests.
  static std::string row_sum(const std::string& path, const FileState& state,
                             const std::string& hash);
  std::uint64_t files_read() const { return files_read_; }      ///< not told by the ledger
  std::uint64_t files_known() const { return files_known_; }    ///< told by it
  std::uint64_t files_differ() const { return files_differ_; }  ///< of `check`

 private:
  struct Table;
  struct Row {
    std::string path;
    FileState state;
    std::string hash;
  };
  template <class Use>
  void with_table(bool make, const Use& use);
  std::optional<std::string> find(const std::string& path, const FileState& state);
  void put(Row&& row);
  void write_pending();

  std::string path_;
  bool check_;
  bool off_ = false;  // it cannot be used
  std::unique_ptr<Table> table_;
  std::vector<Row> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t files_read_ = 0, files_known_ = 0, files_differ_ = 0;
};

}  // namespace vfm::io
