// A long text file that is written as it comes, and appears when it is whole (io/atomic_file.h):
// in memory are 64 KiB of it, however long it is. Where the same text stands there already it stays
// as it is, with its time stamp, as with update_file().
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
  /// Whether something else stands there, or nothing. Nothing is added afterwards.
  bool differs();
  /// Lets it appear, durably. Without, there is nothing.
  void commit();
  /// commit(), if it differs.
  void update();

 private:
  void flush();

  AtomicFile file_;
  std::string buffer_;
};

}  // namespace vfm::io
