// A cache of the hashes of files, kept between runs, so that unchanged files are not read again.
//
// The ledger has a row for each file. A row is valid if the file's size, mtime, ctime, inode and
// device have not changed. A file that changed in the last two seconds, or during the read, gets no
// row. The row of an object is valid if its size and version (ETag) have not changed. The ledger is
// an SQLite file. Several programs may use the ledger at the same time. A killed program does not
// damage the ledger.
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
#include "io/remote/remote_file.h"

namespace vfm::io {

/// Facts of a file. If they are the same later, the file is unchanged. For an object, `inode` and
/// `device` are a hash of the version, and the times are 0.
struct FileState {
  std::uint64_t bytes = 0, inode = 0, device = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const FileState&) const = default;

  static FileState of(const File& file);
  static FileState of(const RemoteFile& object);
};

/// Returns the XXH3-128 of an object's contents as 32 hex digits: the hash that its writer stored,
/// or else that of the bytes, which are read. Throws Error and Stopped.
std::string hash_object(const std::shared_ptr<RemoteFile>& object);

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

  /// Returns hash_file() of a file that was just opened. If the file has a valid row, takes the
  /// hash from the row. Rows have absolute paths, in which links are not resolved. Throws Error if
  /// the file cannot be read. Throws Stopped.
  std::string hash(File& file);
  /// The same for an object: returns hash_object(). Its row has the address.
  std::string hash(const std::shared_ptr<RemoteFile>& object);
  /// Writes the rows that are not in the file yet. hash() also writes them at intervals.
  void finish();

  const std::string& path() const { return path_; }
  /// Returns the checksum of a row. For tests.
  static std::string row_sum(const std::string& path, const FileState& state,
                             const std::string& hash);
  std::uint64_t files_read() const { return files_read_; }
  /// Number of files whose hash was taken from a row, or was stored with the object.
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

  std::string path_;
  bool off_ = false;
  std::unique_ptr<Table> table_;
  std::vector<Row> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t files_read_ = 0, files_known_ = 0;
};

}  // namespace vfm::io
