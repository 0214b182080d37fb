// A temporary file for data that a run keeps on disk instead of in memory.
//
// The file has no name, so nothing remains after a killed run. Thread-safety: one thread appends at
// a time; then any thread may call read().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

/// Makes a file without a name in `folder`, or in its local folder (io/folder.h). Throws Error.
File open_nameless(const std::string& folder);

class ScratchFile {
 public:
  /// Keeps the first 256 KiB in a buffer. For more data, makes a file in `folder`, which must then
  /// exist, or in the local folder of a folder in a bucket (scratch_folder_of(), io/folder.h).
  explicit ScratchFile(std::string folder);
  /// Takes a file that was written before, only to read it.
  explicit ScratchFile(File written);
  ~ScratchFile();
  ScratchFile(ScratchFile&&) noexcept;
  ScratchFile& operator=(ScratchFile&&) noexcept;

  /// Throws Error. Throws Stopped if the disk is full.
  void append(std::string_view bytes);
  /// Appends the text with its length, for ScratchReader::text().
  void append_text(std::string_view text);
  std::uint64_t size() const { return on_disk_ + buffer_.size(); }
  void read(void* out, std::size_t size, std::uint64_t offset) const;

  /// Return the current and the highest number of bytes on disk of all ScratchFiles of this
  /// process.
  static std::uint64_t disk_bytes();
  static std::uint64_t most_disk_bytes();

 private:
  void flush();

  std::string folder_;
  File file_;
  std::uint64_t on_disk_ = 0, counted_ = 0;  // counted_: in disk_bytes()
  std::string buffer_;
};

/// Reads a ScratchFile from its beginning, or from `begin` to `end`. `file` must outlive the
/// reader, and must not be moved. Thread-safety: one thread at a time.
class ScratchReader {
 public:
  explicit ScratchReader(const ScratchFile& file, std::size_t buffer = std::size_t{256} << 10);
  ScratchReader(const ScratchFile& file, std::uint64_t begin, std::uint64_t end,
                std::size_t buffer);

  /// Returns the next `size` bytes, or fewer at the end. The bytes are valid until the next call.
  std::string_view bytes(std::size_t size);
  /// Reads a text that append_text() or put_text() wrote. Returns false at the end.
  bool text(std::string_view& out);
  bool ended() const { return offset_ == end_ && at_ == filled_; }

 private:
  bool fill(std::size_t size);

  const ScratchFile* file_;
  std::uint64_t offset_, end_;  // Range of the bytes not yet in buffer_.
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_, at_ = 0, filled_ = 0;
};

}  // namespace vfm::io
