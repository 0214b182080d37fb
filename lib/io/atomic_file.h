// Outputs that appear whole or not at all.
//
// An AtomicFile writes ".NAME.tmp" beside its target and renames it at commit, after fsync of the
// file; then it syncs the directory. Killed at any moment, the target is absent, old or complete.
// The temporary name is fixed, so that a second run overwrites a killed one's file; a lock on it
// keeps living writers of one target apart. For files that belong together, hold the AtomicFile of
// the one written last, such as the record beside a tar: await() it, check whether the files exist
// now, and make them if not. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

class AtomicFile {
 public:
  /// Creates the temporary file (the directory must exist). Throws Error; "... is being written by
  /// another program" when a living writer holds the target.
  explicit AtomicFile(std::string path);
  /// The same, but waits while a living writer holds the target. Throws Stopped.
  static AtomicFile await(std::string path);
  /// Abandons, unless committed: the temporary file is removed.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_; }
  int fd() const { return file_.fd(); }

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::uint64_t bytes_written() const { return written_; }
  /// Syncs and renames the file, also one filled through fd() or by another library. Throws Error;
  /// then the target is unchanged.
  void commit();
  /// True if the target differs or does not exist. Throws Error; Stopped.
  bool differs() const;
  /// commit(), if it differs; else the file there is left untouched, and the temporary one
  /// abandoned.
  void commit_changes();
  void abandon() noexcept;

 private:
  AtomicFile(std::string path, bool wait);

  std::string path_, temporary_;
  File file_;
  std::uint64_t written_ = 0;
};

/// While it lives, its thread's waits are logged only with -v: of ranks that wait for a file one
/// logs it. Thread-safety: one object at a time in a thread.
class QuietWaits {
 public:
  explicit QuietWaits(bool quiet);
  ~QuietWaits();
  QuietWaits(const QuietWaits&) = delete;
  QuietWaits& operator=(const QuietWaits&) = delete;
};

/// AtomicFile in one call. Waits for another program that writes the same file.
void write_file(const std::string& path, std::string_view contents);
/// write_file, but an existing file with the same bytes is left untouched (its time stamp stays, so
/// make sees no change).
void update_file(const std::string& path, std::string_view contents);
/// fsync of a directory, after a rename or unlink in it.
void sync_directory(const std::string& path);

}  // namespace vfm::io
