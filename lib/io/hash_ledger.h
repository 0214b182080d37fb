// A cache of the hashes of files, kept between runs, so that unchanged files are not read again.
//
// The ledger has a row for each file. A row is valid if the file's size, mtime, ctime, inode and
// device have not changed. A file that changed in the last two seconds, or during the read, gets no
// row. An object (io/remote/address.h) has its size and, in place of the inode, a number made of
// its version. An object without a version gets no row.
//
// The ledger is an SQLite file, in a bucket a growing one (io/growing_file.h). Several programs may
// use the ledger at the same time. In a bucket, the rows of the last one stay. A killed program
// does not damage the ledger.
//
// Thread-safety: one thread at a time; several programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/growing_file.h"

namespace vfm::io {

/// Facts of a file. If they are the same later, the file is unchanged.
struct FileState {
  std::uint64_t bytes = 0, inode = 0, device = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const FileState&) const = default;

  /// All times of an object are 0.
  static FileState of(const File& file);
};

class HashLedger {
 public:
  /// A new ledger is made only after kLeastFiles files or kLeastBytes bytes were read.
  static constexpr std::size_t kLeastFiles = 256;
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;

  /// Uses the ledger at `path`, but does not make one yet. If the ledger is damaged, or the file at
  /// `path` is not a ledger, warns and replaces the file. After any other error, warns and uses no
  /// ledger.
  explicit HashLedger(std::string path);
  /// Calls finish().
  ~HashLedger();
  HashLedger(const HashLedger&) = delete;
  HashLedger& operator=(const HashLedger&) = delete;

  /// Returns hash_file() of a file that was just opened. Returns the hash that an object's writer
  /// stored, if there is one. If the file has a valid row, takes the
  /// hash from the row. Rows have absolute paths, in which links are not resolved. Throws Error if
  /// the file cannot be read. Throws Stopped.
  std::string hash(File& file);
  /// Writes the rows that are not in the file yet. hash() also writes them at intervals.
  void finish();

  const std::string& path() const { return file_.path(); }
  /// Returns the checksum of a row. For tests.
  static std::string row_sum(const std::string& path, const FileState& state,
                             const std::string& hash);
  std::uint64_t files_read() const { return files_read_; }
  /// Number of files whose hash was taken from a row.
  std::uint64_t files_known() const { return files_known_; }

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

  GrowingFile file_;
  bool off_ = false;
  std::unique_ptr<Table> table_;
  std::vector<Row> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t files_read_ = 0, files_known_ = 0;
};

}  // namespace vfm::io
