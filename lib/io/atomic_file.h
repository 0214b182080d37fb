// Outputs that appear whole or not at all.
//
// An AtomicFile writes ".NAME.tmp" beside its target. A commit syncs this file (fsync), renames it
// and syncs the directory. If the program is killed at any moment, the target is absent, old or
// complete. The temporary name is fixed, so that the next run overwrites what a killed run left; a
// lock on the file excludes other writers of the target. For files that belong together, hold the
// AtomicFile of the file written last, such as the record beside a tar: await() it, check whether
// the files exist now, and make them if not. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

class AtomicFile {
 public:
  /// Creates the temporary file (the directory must exist). Throws Error, with the text "... is
  /// being written by another program" if a living writer holds the target.
  explicit AtomicFile(std::string path);
  /// Does what the constructor does, but waits while a living writer holds the target. Throws
  /// Stopped.
  static AtomicFile await(std::string path);
  /// Calls abandon(), unless the file was committed.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_; }
  int fd() const { return file_.fd(); }

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::uint64_t bytes_written() const { return written_; }
  /// Syncs and renames the file, however it was filled (also through fd() or by another library).
  /// If it throws Error, the target is unchanged.
  void commit();
  /// Returns whether the target differs or does not exist. Throws Error; Stopped.
  bool differs() const;
  /// Calls commit() if differs() is true, and otherwise abandon().
  void commit_changes();
  void abandon() noexcept;

 private:
  AtomicFile(std::string path, bool wait);

  std::string path_, temporary_;
  File file_;
  std::uint64_t written_ = 0;
};

/// While an object with `quiet` lives, its thread's waits for files are logged only with -v, so
/// that only one of several ranks logs a wait. Thread-safety: one object at a time in a thread.
class QuietWaits {
 public:
  explicit QuietWaits(bool quiet);
  ~QuietWaits();
  QuietWaits(const QuietWaits&) = delete;
  QuietWaits& operator=(const QuietWaits&) = delete;
};

/// Writes a whole AtomicFile. Waits for another program that writes the same file.
void write_file(const std::string& path, std::string_view contents);
/// Does what write_file() does, but leaves an existing file with the same bytes untouched.
void update_file(const std::string& path, std::string_view contents);
/// Calls fsync() on a directory, after a rename or unlink in it.
void sync_directory(const std::string& path);

}  // namespace vfm::io
