// A cache of the hashes of files' contents, kept from run to run, so that unchanged files are not
// read again.
//
// A row is valid if size, mtime, ctime (which no program can set), inode and device are the same as
// when the file was read. If the cache is damaged, files are read again. The cache is an SQLite
// file: several programs may use it at once, a killed program leaves it whole, and a hundred
// million rows take no memory. Each row has a checksum against damage that SQLite does not detect.
//
// A file that changed in the last two seconds, or while it was read, gets no row, since another
// change might leave its times as they are.
//
// Few files need no ledger, and none is made. A ledger contains inodes and times, so it is the only
// file in which folders of equal outputs differ. Thread-safety: one thread at a time; several
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

/// If these facts are the same, a file is regarded as unchanged.
struct FileState {
  std::uint64_t bytes = 0, inode = 0, device = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const FileState&) const = default;

  static FileState of(const File& file);
};

class HashLedger {
 public:
  /// A ledger is made once this many files, or bytes, were read.
  static constexpr std::size_t kLeastFiles = 256;
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;

  /// Uses the ledger at `path`; makes nothing yet. With `check`, reads all files, and warns of each
  /// file whose contents differ from its valid row. If `path` is damaged or no ledger, replaces it,
  /// with a warning. If it cannot be used for any other reason, ignores it, with a warning.
  HashLedger(std::string path, bool check);
  /// Calls finish().
  ~HashLedger();
  HashLedger(const HashLedger&) = delete;
  HashLedger& operator=(const HashLedger&) = delete;

  /// Returns the hash_file() of a file just opened, or the file's hash from a valid row. Rows have
  /// absolute paths, with links unresolved. Throws Error if the file cannot be read; Stopped.
  std::string hash(File& file);
  /// Writes the latest rows. This also happens automatically now and then.
  void finish();

  const std::string& path() const { return path_; }
  /// Returns the checksum of a row. For tests.
  static std::string row_sum(const std::string& path, const FileState& state,
                             const std::string& hash);
  std::uint64_t files_read() const { return files_read_; }      ///< files that were read
  std::uint64_t files_known() const { return files_known_; }    ///< hashes from rows
  std::uint64_t files_differ() const { return files_differ_; }  ///< files unlike their row

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
  bool off_ = false;  // the ledger cannot be used
  std::unique_ptr<Table> table_;
  std::vector<Row> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t files_read_ = 0, files_known_ = 0, files_differ_ = 0;
};

}  // namespace vfm::io
