// Reads lines one at a time from a file, or from a pipe that another program still writes. A line
// ends with a newline, or with NUL as in `find -print0`. A file whose name ends with ".zst" is
// unpacked (io/zstd_reader.h). Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "io/file.h"

namespace vfm::io {

class ZstdReader;

/// Thrown for a line over 16 MiB.
class LongLine : public Error {
 public:
  using Error::Error;
};

class LineReader {
 public:
  /// `name`, such as "'a.jsonl'", is for messages. `end` is the last character of a line.
  LineReader(File file, std::string name, char end = '\n');
  /// Returns a reader of standard input, with a duplicate of the descriptor. Throws Error if
  /// standard input is closed.
  static LineReader standard_input(char end = '\n');
  /// Returns a reader of the same lines, which leaves them to the next reader. Throws Error if
  /// standard input is not a regular file.
  static LineReader standard_input_again();

  /// Returns the next line without its newline, or nullopt at the end. A last line without newline
  /// is returned, too. Throws LongLine for a line over 16 MiB. The next call then returns the
  /// following line. Throws Error if the file cannot be read; if the compressed file is damaged,
  /// the cause is `format`, and if it unpacks to too much, `limit`. Throws Stopped after a signal.
  std::optional<std::string> next();
  /// Returns the place of the line that next() read last, such as "line 3 of standard input".
  std::string where() const;
  const std::string& name() const { return name_; }

 private:
  void read_more();
  [[noreturn]] void skip_line();
  [[noreturn]] void refuse_line() const;

  File file_;
  std::shared_ptr<ZstdReader> unpacked_;  // Never shared. Has the file, if it is compressed.
  std::string name_;
  char end_;
  std::string buffer_;  // Bytes read. Bytes before begin_ were returned.
  std::size_t begin_ = 0;
  std::size_t line_ = 0;
  bool ended_ = false;
};

}  // namespace vfm::io
