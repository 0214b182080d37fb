// Reads samples that are plain files in a folder, KEY.mp4 beside KEY.json, as a tar.
//
// A list of files, NAME.files, is a JSON object whose "samples" is an array of {"key":K, "files":
// [{"extension":E, "bytes":N, "xxh3":H}, ...]}. The files are K.E in the list's folder. A list is
// written after all its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/file.h"

namespace vfm::shard {

/// Returns whether a path has the extension of a list of files.
bool is_file_list(std::string_view path);

/// Makes the bytes of a tar (vfm-shard(5)) from the files in a list. The files may have any size.
/// Thread-safety: one thread at a time.
class FileListTar {
 public:
  /// Throws Error if the list cannot be read or is invalid.
  explicit FileListTar(const std::string& path);
  /// Reads the next bytes of the tar, up to `size`. Returns 0 at the end. Throws Error if a file's
  /// size or hash differs from the list. The size is checked before the file is read, and the hash
  /// before the file's last bytes are returned.
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
  std::size_t next_ = 0;  // number of the file after the present file
  std::string block_;     // block of the tar: header, padding of a file, or end
  std::size_t at_ = 0;    // bytes of `block_` already returned
  io::File file_;
  std::size_t left_ = 0;  // bytes of the present file not yet read
  Hasher hasher_;
};

}  // namespace vfm::shard
