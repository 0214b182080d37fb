// Files that grow while a program runs, such as errors.jsonl, metrics.jsonl, TensorBoard's events
// and databases. On a disk they are where their path says. Objects of a bucket cannot grow, so such
// a file is kept in a local folder (local_folder_of(), io/folder.h), and put() writes it as a whole
// object: at each part or checkpoint, and at the end. If programs of two machines write one object,
// the last one's stays, unless its lines may be joined. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::io {

class GrowingFile {
 public:
  /// `path` is a path or an address. For an address, reads the object into the local file if there
  /// is one and the local file is not of this object's version or later. Throws Error.
  explicit GrowingFile(std::string path) : GrowingFile(std::move(path), false) {}
  /// The same for a file whose lines may come in any order. put() first appends the lines of
  /// another program, if this has replaced the object.
  static GrowingFile of_lines(std::string path) { return {std::move(path), true}; }

  const std::string& path() const { return path_; }
  /// Where the file is while it grows: path() itself on a disk.
  const std::string& local() const { return local_; }
  /// Writes the object if the local file has changed since the last put(). Nothing on a disk.
  void put();
  /// Removes the file, and the object.
  void remove();

 private:
  GrowingFile(std::string path, bool lines);
  void take_lines();

  std::string path_, local_;
  bool lines_;
  std::string version_;    // Of the object from which the local file grew, or empty.
  std::string put_state_;  // Of the local file, when put() last wrote it.
};

/// Returns whether the store of a bucket's folder can replace an object that nobody else has
/// replaced, and only then.
bool replaces_by_version(const std::string& folder);
/// Returns the lines of a text that are not empty, without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace vfm::io
