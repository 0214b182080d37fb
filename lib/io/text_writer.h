// Writes a long text file piece by piece, atomically (io/atomic_file.h). It takes 64 KiB of memory
// for any length. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/atomic_file.h"

namespace vfm::io {

class TextWriter {
 public:
  /// Begins the file `path`, whose folder must exist. Waits for another program that writes it.
  /// Throws Error; Stopped.
  explicit TextWriter(const std::string& path) : file_(AtomicFile::await(path)) {}

  void add(std::string_view text);
  /// Returns whether the file at `path` differs or does not exist. After this call nothing may be
  /// added.
  bool differs();
  /// Makes the file appear, durably. Without commit() or update(), no file appears.
  void commit();
  /// Calls commit() if differs() is true.
  void update();

 private:
  void flush();

  AtomicFile file_;
  std::string buffer_;
};

}  // namespace vfm::io
