// The input of a tool, given as command line arguments.
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

/// The argument for names on standard input. Each name ends with NUL, and is taken literally.
inline const std::string kNames("-\0", 2);

/// A reader of input lines. The argument "-" stands for the lines on standard input, and kNames for
/// the names there. If `holds_lines` returns true for an argument, the argument names a file with
/// lines. Any other argument is a line. Blank lines are skipped. Begin and end records of a tool's
/// output are removed. After the last line, streams() tells whether the input was complete
/// (io/streams.h). Thread-safety: one thread at a time.
class InputLines {
 public:
  struct Line {
    std::string text;
    std::string where;   ///< Origin for messages, such as "line 3 of standard input".
    bool as_is = false;  ///< Set if the text is an argument or a name, and so never JSON.
    /// Reason if the text is missing: a line over 16 MiB, or a file that cannot be read (further).
    std::string error;
  };
  using HoldsLines = std::function<bool(const std::string& argument)>;

  explicit InputLines(std::vector<std::string> arguments, HoldsLines holds_lines = {});
  /// Leaves the lines of standard input to the next reader of this kind
  /// (LineReader::standard_input_again()). The arguments must not have kNames.
  static InputLines read_again(std::vector<std::string> arguments);
  /// Returns the next line, or nullopt at the end. Throws Error if standard input cannot be read.
  /// Throws Stopped after a signal.
  std::optional<Line> next();
  const InputStreams& streams() const { return streams_; }

 private:
  std::optional<Line> next_argument();
  std::optional<Line> next_line();

  std::vector<std::string> arguments_;
  HoldsLines holds_lines_;
  std::size_t next_argument_ = 0;
  std::optional<LineReader> lines_;
  bool names_ = false, again_ = false;
  InputStreams streams_;
};

}  // namespace vfm::io
