// Hashes of files' contents, kept from run to run, so that an unchanged file is not read again.
//
// A row holds if size, mtime, ctime (which no program can set), inode and device are as when the
// file was read. It is only a cache: if it is damaged, files are read instead. It is an SQLite
// file, since several programs may use it at once, a killed one leaves it whole, and a hundred
// million rows take no memory. Each row has a checksum against damage that SQLite does not see.
//
// A file changed in the last two seconds, or while it was read, is not noted, since its times could
// stay the same after the next change.
//
// No ledger is made for few files. It holds inodes and times, so it is the only file in which
// folders of equal outputs differ. Thread-safety: one thread at a time; several programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"

namespace vfm::io {

/// The facts by which a file counts as unchanged.
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

  /// Uses the ledger at `path`; makes nothing yet. `check`: reads all files, and warns of those
  /// whose contents differ from a row that seems to hold. A damaged ledger, or another file, is
  /// replaced, with a warning; one that cannot be used is left, with a warning.
  HashLedger(std::string path, bool check);
  /// finish().
  ~HashLedger();
  HashLedger(const HashLedger&) = delete;
  HashLedger& operator=(const HashLedger&) = delete;

  /// hash_file(file) of a file just opened, from the ledger if its row holds. A relative path is
  /// noted as absolute, with links unresolved. Throws Error if the file cannot be read; Stopped.
  std::string hash(File& file);
  /// A number that was noted under a name; 0 if none was.
  std::int64_t note(const std::string& name);
  /// Makes the ledger if there is none, unless the value is a 0 that was not noted before.
  void set_note(const std::string& name, std::int64_t value);
  /// Writes the latest notes. This also happens automatically now and then.
  void finish();

  const std::string& path() const { return path_; }
  /// The checksum of a row. For tests.
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
