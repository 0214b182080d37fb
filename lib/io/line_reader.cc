// SPDX-License-Identifier: Apache-2.0
#include "io/line_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::io {

constexpr std::size_t kMaxLine = std::size_t{16} << 20;

LineReader LineReader::standard_input() {
  const std::string name = "standard input";
  File file(::dup(STDIN_FILENO), name);
  if (!file) fail_errno(errno, "cannot read standard input");
  return LineReader(std::move(file), name);
}

std::optional<std::string> LineReader::next() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', begin_);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      const std::size_t stop = std::min(end, buffer_.size());
      std::string text = buffer_.substr(begin_, stop - begin_);
      begin_ = std::min(stop + 1, buffer_.size());
      ++line_;
      return text;
    }
    if (ended_) return std::nullopt;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kMaxLine) fail("line {} of {} is longer than 16 MiB", line_ + 1, name_);
    const std::size_t old = buffer_.size();
    buffer_.resize(old + (1 << 16));
    check_stop();
    const std::size_t got = file_.read_some(buffer_.data() + old, 1 << 16);
    buffer_.resize(old + got);
    ended_ = got == 0;
  }
}

std::string LineReader::where() const {
  return fmt::format("line {} of {}", line_, name_);
}

}  // namespace vfm::io
