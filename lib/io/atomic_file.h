// Output files that are complete or absent.
//
// An AtomicFile writes the file ".NAME.tmp" beside its target, or a file in a TemporaryPlace. Even
// if the program is killed, the target is absent, old or complete. The temporary name is fixed, so
// that the next run overwrites the file of a killed run. A lock on the temporary file excludes
// other writers of the target. If several files belong together, first call await() for the file
// that is written last, such as the record beside a tar. Then write those of the files that still
// do not exist. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

class ObjectUpload;

class AtomicFile {
 public:
  /// Creates the temporary file in an existing directory. Throws Error ("... is being written by
  /// another program") if a running program writes the target.
  explicit AtomicFile(std::string path);
  /// Waits while a running program writes the target. Then creates the temporary file. Throws
  /// Stopped.
  static AtomicFile await(std::string path);
  /// Calls abandon() if the file was not committed.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  const std::string& path() const { return path_; }
  /// Return the local file that has the bytes until commit().
  const std::string& temporary_path() const;
  int fd() const;
  /// Returns whether write() sends the bytes to a bucket.
  bool sends() const { return upload_ != nullptr; }

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::uint64_t bytes_written() const { return written_; }
  /// Syncs the file (fsync), renames the file to the target, and syncs the directory. The file may
  /// also be filled through fd() or by a library. If commit() throws Error, the target is
  /// unchanged.
  void commit();
  /// Returns true if the target does not exist, or if its bytes differ from those of the temporary
  /// file. Objects are compared by the hash that their writer stored. Throws Error and Stopped.
  bool differs() const;
  /// Calls commit() if differs() returns true, else abandon().
  void commit_changes();
  void abandon() noexcept;

 private:
  AtomicFile(std::string path, bool wait);
  void use_local_file() const;
  void send();

  std::string path_;
  mutable std::unique_ptr<ObjectUpload> upload_;  // Null for a local file.
  mutable std::string temporary_;                 // Empty if nothing is left to remove.
  mutable File file_;
  std::uint64_t written_ = 0;
};

/// While an object made with `quiet` = true exists, this thread logs its waits for files only with
/// -v. Thus only one process of a distributed run logs a wait. Thread-safety: one object at a time
/// in a thread.
class QuietWaits {
 public:
  explicit QuietWaits(bool quiet);
  ~QuietWaits();
  QuietWaits(const QuietWaits&) = delete;
  QuietWaits& operator=(const QuietWaits&) = delete;
};

/// While an object of this class exists, the temporary files of targets below `root` are in
/// `folder`, in all threads. `folder` is on the same file system, and only this process writes it.
/// If the process is killed, another can thus remove its temporary files without a look at all
/// folders below `root`. Only one object may exist at a time.
class TemporaryPlace {
 public:
  /// Makes `folder`, unless `root` is in a bucket. Then the object does nothing. Throws Error.
  TemporaryPlace(const std::string& root, const std::string& folder);
  /// Removes `folder` and what is in it.
  ~TemporaryPlace();
  TemporaryPlace(const TemporaryPlace&) = delete;
  TemporaryPlace& operator=(const TemporaryPlace&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// Writes a whole file atomically. Waits while another program writes the file.
void write_file(const std::string& path, std::string_view contents);
/// Writes a whole file as write_file() does, unless the file already has these bytes.
void update_file(const std::string& path, std::string_view contents);
/// Calls fsync() on a directory. Does nothing for a bucket. Call sync_directory() after a rename or
/// unlink in the directory.
void sync_directory(const std::string& path);

}  // namespace vfm::io
