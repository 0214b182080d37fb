// Writes a long text file in pieces, atomically (io/atomic_file.h). Memory: 64 KiB. Thread-safety:
// one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/atomic_file.h"

namespace vfm::io {

class TextWriter {
 public:
  /// Begins the file `path`, whose folder must exist. Waits while another program writes the file.
  /// Throws Error and Stopped.
  explicit TextWriter(const std::string& path) : file_(AtomicFile::await(path)) {}

  void add(std::string_view text);
  /// Returns true if the file at `path` does not exist, or if its text differs from the added text.
  /// After this call, add nothing.
  bool differs();
  /// Writes the file durably to its path. Without commit() or update(), the file at `path` does not
  /// change.
  void commit();
  /// Calls commit() if differs() returns true.
  void update();

 private:
  void flush();

  AtomicFile file_;
  std::string buffer_;
};

}  // namespace vfm::io
