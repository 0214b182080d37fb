// Reads samples that are plain files in a folder, KEY.mp4 beside KEY.json, as a tar.
//
// The list, NAME.files, is a JSON object whose "samples" is an array of {"key":K, "files":
// [{"extension":E, "bytes":N, "xxh3":H}, ...]}. The files are K.E in the list's folder, so a list
// can name no file outside this folder. The list is written after all its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/file.h"

namespace vfm::shard {

/// Returns whether a path has a list's extension.
bool is_file_list(std::string_view path);

/// Makes the bytes of a tar of the list's files (vfm-shard(5)), read from the files piece by piece.
/// A file may have any size.
/// Thread-safety: one thread at a time.
class FileListTar {
 public:
  /// Throws Error if the list cannot be read or is invalid.
  explicit FileListTar(const std::string& path);
  /// Reads the next bytes, up to `size`. Returns 0 at the end. Throws Error if a file's size
  /// (before it is read) or hash (before its last bytes are returned) differs from the list.
  std::size_t read(char* out, std::size_t size);

 private:
  struct Entry {
    std::string name, hash;
    std::size_t bytes = 0;
  };
  void begin_file();
  void check_file();

  std::string folder_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  // the file after the one being read
  std::string block_;   // of the tar: a header, what fills up the last block of a file, or the end
  std::size_t at_ = 0;  // in it
  io::File file_;
  std::size_t left_ = 0;  // bytes of the file to come
  Hasher hasher_;
};

}  // namespace vfm::shard
