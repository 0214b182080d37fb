// A tar that is read here and there: a file or an object, plain or compressed in frames of zstd.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/file.h"

namespace vfm::io {
class ZstdFrames;
}

namespace vfm::shard {

/// Thread-safety: const members from any thread.
class TarFile {
 public:
  /// Opens a tar, which is compressed if its name ends with ".zst". Throws Error, also if it is
  /// compressed without a table of its frames (io/zstd_frames.h).
  explicit TarFile(const std::string& path);
  ~TarFile();

  const std::string& path() const;
  /// Return sizes, and read bytes at an offset, of the tar itself, unpacked.
  std::uint64_t size() const;
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const;
  /// Returns the object that has these bytes, or null for a local or compressed tar.
  const io::RemoteFile* remote() const;
  /// Returns the file, for reads in order. The tar must not be compressed.
  io::File& plain() { return file_; }

 private:
  io::File file_;  // Empty if `frames_` has it.
  std::unique_ptr<io::ZstdFrames> frames_;
};

/// Returns whether a tar has an index beside it (energon_index_path()), and can be read by it.
bool has_index(const std::string& tar);

}  // namespace vfm::shard
