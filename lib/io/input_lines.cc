// SPDX-License-Identifier: Apache-2.0
#include "io/input_lines.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "io/held_begin.h"

namespace vfm::io {

InputLines::InputLines(std::vector<std::string> arguments, HoldsLines holds_lines)
    : arguments_(std::move(arguments)), holds_lines_(std::move(holds_lines)) {}

InputLines InputLines::read_again(std::vector<std::string> arguments) {
  InputLines lines(std::move(arguments));
  lines.again_ = true;
  return lines;
}

std::optional<InputLines::Line> InputLines::next() {
  write_held_begin();
  while (lines_ || next_argument_ < arguments_.size())
    if (auto line = lines_ ? next_line() : next_argument()) return line;
  return std::nullopt;
}

/// Returns nullopt if the argument stands for lines, which next_line() reads.
std::optional<InputLines::Line> InputLines::next_argument() {
  const std::string& argument = arguments_[next_argument_++];
  names_ = argument == kNames;
  if (argument == "-" || names_) {
    lines_.emplace(again_ ? LineReader::standard_input_again()
                          : LineReader::standard_input(names_ ? '\0' : '\n'));
    return std::nullopt;
  }
  if (!holds_lines_ || !holds_lines_(argument))
    return Line{argument, fmt::format("argument '{}'", with_bytes_shown(argument)), true, {}};
  try {
    lines_.emplace(File::open_read(argument), fmt::format("'{}'", argument));
  } catch (const Error& error) {
    return Line{{}, argument, false, error.what()};
  }
  return std::nullopt;
}

/// Returns nullopt for a blank line and for a begin or end record. At the end, also resets
/// `lines_`.
std::optional<InputLines::Line> InputLines::next_line() {
  std::optional<std::string> text;
  try {
    text = lines_->next();
  } catch (const LongLine& error) {
    streams_.take("", lines_->name());  // The line counts in its stream.
    return Line{{}, lines_->where(), false, error.what()};
  } catch (const Error& error) {
    // The lines before the damage of a compressed file are read.
    if (error.cause() != Cause::format && error.cause() != Cause::limit) throw;
    lines_.reset();
    return Line{{}, arguments_[next_argument_ - 1], false, error.what()};
  }
  if (!text) {
    lines_.reset();
    return std::nullopt;
  }
  if (names_ && !text->empty()) return Line{*std::move(text), lines_->where(), true, {}};
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return std::nullopt;
  try {
    if (streams_.take(*text, lines_->name())) return std::nullopt;
  } catch (const Error& error) {
    return Line{{}, lines_->where(), false, error.what()};
  }
  return Line{*std::move(text), lines_->where(), false, {}};
}

}  // namespace vfm::io
