// Writes a long text file piece by piece; it appears when it is whole (io/atomic_file.h). Memory is
// 64 KiB, for any length. A file with the same text is left untouched, with its time stamp, as with
// update_file().
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/atomic_file.h"

namespace vfm::io {

class TextWriter {
 public:
  /// The text of `path`, whose folder exists. Waits for another program that writes it. Throws
  /// Error; Stopped.
  explicit TextWriter(const std::string& path) : file_(AtomicFile::await(path)) {}

  void add(std::string_view text);
  /// True if the file at `path` differs or does not exist. Nothing may be added afterwards.
  bool differs();
  /// Makes it appear, durably. Without this, no file appears.
  void commit();
  /// commit(), if it differs.
  void update();

 private:
  void flush();

  AtomicFile file_;
  std::string buffer_;
};

}  // namespace vfm::io
