// SPDX-License-Identifier: Apache-2.0
#include "io/line_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/stop.h"
#include "io/zstd_reader.h"

namespace vfm::io {

constexpr std::size_t kMaxLine = std::size_t{16} << 20;

LineReader::LineReader(File file, std::string name, char end)
    : file_(std::move(file)), name_(std::move(name)), end_(end) {
  if (is_zstd_name(file_.path())) unpacked_ = std::make_shared<ZstdReader>(std::move(file_));
}

LineReader LineReader::standard_input(char end) {
  const std::string name = "standard input";
  File file(::dup(STDIN_FILENO), name);
  if (!file) fail_errno(errno, "cannot read standard input");
  return LineReader(std::move(file), name, end);
}

LineReader LineReader::standard_input_again() {
  const std::string name = "standard input";
  const off_t at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);  // Fails for a pipe.
  File file(at < 0 ? -1 : ::open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC), name);
  if (!file || ::lseek(file.fd(), at, SEEK_SET) < 0)
    fail_errno(errno, "cannot read standard input more than once");
  return LineReader(std::move(file), name);
}

std::optional<std::string> LineReader::next() {
  for (;;) {
    const std::size_t end = buffer_.find(end_, begin_);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      const std::size_t begin = begin_, stop = std::min(end, buffer_.size());
      begin_ = std::min(stop + 1, buffer_.size());
      ++line_;
      if (stop - begin > kMaxLine) refuse_line();
      return buffer_.substr(begin, stop - begin);
    }
    if (ended_) return std::nullopt;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kMaxLine) skip_line();
    read_more();
  }
}

void LineReader::read_more() {
  constexpr std::size_t kPiece = 1 << 16;
  const std::size_t old = buffer_.size();
  buffer_.resize(old + kPiece);
  check_stop();
  char* const to = buffer_.data() + old;
  const std::size_t got =
      unpacked_ ? unpacked_->read_some(to, kPiece) : file_.read_some(to, kPiece);
  buffer_.resize(old + got);
  ended_ = got == 0;
}

void LineReader::skip_line() {
  std::size_t end = std::string::npos;
  while (end == std::string::npos && !ended_) {
    buffer_.clear();
    read_more();
    end = buffer_.find(end_);
  }
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  ++line_;
  refuse_line();
}

void LineReader::refuse_line() const {
  throw LongLine(where() + " is longer than 16 MiB");
}

std::string LineReader::where() const {
  return fmt::format("line {} of {}", line_, name_);
}

}  // namespace vfm::io
