// SPDX-License-Identifier: Apache-2.0
#include "io/text_writer.h"

#include <cstddef>

#include "base/stop.h"

namespace vfm::io {

void TextWriter::add(std::string_view text) {
  constexpr std::size_t kTextBuffer = std::size_t{1} << 16;
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
  return file_.differs();
}

void TextWriter::commit() {
  flush();
  file_.commit();
}

void TextWriter::update() {
  flush();
  file_.commit_changes();
}

}  // namespace vfm::io
