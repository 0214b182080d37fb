// Lines of a text stream, one at a time, as they come: from a file or from a pipe that is still
// written. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "io/file.h"

namespace vfm::io {

class LineReader {
 public:
  /// `name` is for messages: "'a.jsonl'".
  LineReader(File file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}
  /// Standard input, by a descriptor of its own. Throws Error if there is none.
  static LineReader standard_input();

  /// The next line without its newline, or nothing at the end. A last line without newline counts.
  /// Throws Error for a line over 16 MiB, Stopped after a signal.
  std::optional<std::string> next();
  /// Where the last line was: "line 3 of standard input".
  std::string where() const;

 private:
  File file_;
  std::string name_;
  std::string buffer_;  // bytes read; those before begin_ are handed out
  std::size_t begin_ = 0;
  std::size_t line_ = 0;
  bool ended_ = false;
};

}  // namespace vfm::io
