// SPDX-License-Identifier: Apache-2.0
#include "io/text_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/error.h"
#include "base/stop.h"
#include "io/file.h"

namespace vfm::io {
namespace {

constexpr std::size_t kTextBuffer = std::size_t{1} << 16;

}  // namespace

void TextWriter::add(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kTextBuffer) flush();
}

void TextWriter::flush() {
  check_stop();
  file_.write(buffer_);
  buffer_.clear();
}

bool TextWriter::differs() {
  flush();
  if (!file_exists(file_.path())) return true;
  const File there = File::open_regular(file_.path()),
             here(::fcntl(file_.fd(), F_DUPFD_CLOEXEC, 0), file_.path());
  if (!here) fail_errno(errno, "cannot read '{}'", file_.path());
  const std::uint64_t bytes = file_.bytes_written();
  if (there.size() != bytes) return true;
  std::string ours(kTextBuffer, '\0'), theirs(kTextBuffer, '\0');
  for (std::uint64_t at = 0; at < bytes; at += kTextBuffer) {
    check_stop();
    const std::size_t size = std::min<std::uint64_t>(kTextBuffer, bytes - at);
    here.pread_exact(ours.data(), size, at);
    there.pread_exact(theirs.data(), size, at);
    if (std::string_view(ours).substr(0, size) != std::string_view(theirs).substr(0, size))
      return true;
  }
  return false;
}

void TextWriter::commit() {
  flush();
  file_.commit();
}

void TextWriter::update() {
  if (differs())
    commit();
  else
    file_.abandon();
}

}  // namespace vfm::io
