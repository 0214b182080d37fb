// The input of a tool: the arguments of its command line, and the lines of those arguments that
// name a file of lines.
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

/// The argument for names on standard input that end with NUL and are taken literally; no real
/// argument looks like this.
inline const std::string kNames("-\0", 2);

/// "-" means the lines on standard input, kNames the names there, and a file for which
/// `holds_lines` is true its lines. Blank lines are skipped. Lines that begin and end a tool's
/// output are watched (io/streams.h) and not handed out: after the last line, ask streams() whether
/// the input came whole. Thread-safety: one thread at a time.
class InputLines {
 public:
  struct Line {
    std::string text;
    std::string where;   ///< for messages: "line 3 of standard input", "argument 'a.mp4'"
    bool as_is = false;  ///< an argument or a name: no JSON, whatever it looks like
    std::string error;   ///< why there is no text: over 16 MiB, or a file that cannot be opened
  };
  using HoldsLines = std::function<bool(const std::string& argument)>;

  explicit InputLines(std::vector<std::string> arguments, HoldsLines holds_lines = {});
  /// The next line, or nothing at the end. Throws Error if standard input cannot be read, Stopped
  /// after a signal.
  std::optional<Line> next();
  const InputStreams& streams() const { return streams_; }

 private:
  std::optional<Line> next_argument();
  std::optional<Line> next_line();

  std::vector<std::string> arguments_;
  HoldsLines holds_lines_;
  std::size_t next_argument_ = 0;
  std::optional<LineReader> lines_;
  bool names_ = false;  // what lines_ gives ends with NUL
  InputStreams streams_;
};

}  // namespace vfm::io
