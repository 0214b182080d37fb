// The input of a tool: the arguments of its command line. An argument that names a file of lines is
// replaced by the lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/line_reader.h"
#include "io/streams.h"

namespace vfm::io {

/// Stands for names on standard input that end with NUL and are taken literally. No real argument
/// has a NUL.
inline const std::string kNames("-\0", 2);

/// The argument "-" stands for the lines on standard input, and kNames for the names on standard
/// input. A file for which `holds_lines` is true stands for its lines. Blank lines are skipped.
/// Begin and end records of a tool's output are not returned: after the last line, streams() tells
/// whether the input is complete (io/streams.h). Thread-safety: one thread at a time.
class InputLines {
 public:
  struct Line {
    std::string text;
    std::string where;   ///< for messages: "line 3 of standard input", "argument 'a.mp4'"
    bool as_is = false;  ///< an argument or a name: never JSON
    std::string error;   ///< why there is no text: over 16 MiB, or a file that cannot be opened
  };
  using HoldsLines = std::function<bool(const std::string& argument)>;

  explicit InputLines(std::vector<std::string> arguments, HoldsLines holds_lines = {});
  /// Returns the next line, or nothing at the end. Throws Error if standard input cannot be read,
  /// Stopped after a signal.
  std::optional<Line> next();
  const InputStreams& streams() const { return streams_; }

 private:
  std::optional<Line> next_argument();
  std::optional<Line> next_line();

  std::vector<std::string> arguments_;
  HoldsLines holds_lines_;
  std::size_t next_argument_ = 0;
  std::optional<LineReader> lines_;
  bool names_ = false;  // items of lines_ end with NUL
  InputStreams streams_;
};

}  // namespace vfm::io
