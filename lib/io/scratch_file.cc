// SPDX-License-Identifier: Apache-2.0
#include "io/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "io/folder.h"
#include "io/packed.h"

namespace vfm::io {
namespace {

constexpr std::size_t kHeld = std::size_t{256} << 10;  // Bytes that wait in memory.

std::atomic<std::uint64_t> scratch_bytes = 0, most_scratch_bytes = 0;

void count_scratch(std::uint64_t more) {
  const std::uint64_t now = scratch_bytes += more;
  std::uint64_t most = most_scratch_bytes;
  while (most < now && !most_scratch_bytes.compare_exchange_weak(most, now)) {
  }
}

}  // namespace

File open_nameless(const std::string& wanted) {
  const std::string folder = scratch_folder_of(wanted);
  const std::string path = join_path(folder, ".vfm-scratch");
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string name = path + "-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
  }
  if (fd < 0) fail_output(errno, "cannot make a temporary file in '{}'", folder);
  return {fd, path};
}

ScratchFile::ScratchFile(std::string folder) : folder_(std::move(folder)) {}
ScratchFile::ScratchFile(File written) : file_(std::move(written)), on_disk_(file_.size()) {}
ScratchFile::~ScratchFile() {
  scratch_bytes -= counted_;
}
ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      file_(std::move(other.file_)),
      on_disk_(std::exchange(other.on_disk_, 0)),
      counted_(std::exchange(other.counted_, 0)),
      buffer_(std::exchange(other.buffer_, {})) {}
ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(file_, other.file_);
  std::swap(on_disk_, other.on_disk_);
  std::swap(counted_, other.counted_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

void ScratchFile::append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kHeld) flush();
  if (bytes.size() <= kHeld) {
    buffer_ += bytes;
    return;
  }
  buffer_ = bytes;
  flush();
}

void ScratchFile::append_text(std::string_view text) {
  std::string size;  // Short enough for no heap memory.
  put_number(size, text.size());
  append(size);
  append(text);
}

void ScratchFile::flush() {
  if (buffer_.empty()) return;
  if (!file_) file_ = open_nameless(folder_);
  file_.write_all(buffer_.data(), buffer_.size());
  on_disk_ += buffer_.size();
  counted_ += buffer_.size();
  count_scratch(buffer_.size());
  buffer_.clear();
}

void ScratchFile::read(void* out, std::size_t size, std::uint64_t offset) const {
  auto* to = static_cast<char*>(out);
  if (offset < on_disk_) {
    const std::size_t part =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, on_disk_ - offset));
    file_.pread_exact(to, part, offset);
    to += part, size -= part, offset += part;
  }
  if (size == 0) return;
  if (offset - on_disk_ > buffer_.size() || size > buffer_.size() - (offset - on_disk_))
    fail_packed();
  std::memcpy(to, buffer_.data() + (offset - on_disk_), size);
}

std::uint64_t ScratchFile::disk_bytes() {
  return scratch_bytes;
}
std::uint64_t ScratchFile::most_disk_bytes() {
  return most_scratch_bytes;
}

ScratchReader::ScratchReader(const ScratchFile& file, std::size_t buffer)
    : ScratchReader(file, 0, file.size(), buffer) {}
ScratchReader::ScratchReader(const ScratchFile& file, std::uint64_t begin, std::uint64_t end,
                             std::size_t buffer)
    : file_(&file),
      offset_(begin),
      end_(end),
      buffer_(std::make_unique_for_overwrite<char[]>(buffer)),
      capacity_(buffer) {}

/// Reads on until the buffer has `size` bytes. Returns false if the file ends before.
bool ScratchReader::fill(std::size_t size) {
  const std::size_t left = filled_ - at_;
  if (left >= size) return true;
  const std::size_t wanted = size;
  // No memory for what the file does not have.
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left + (end_ - offset_)));
  if (size > capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(size + size / 4);
    std::memcpy(larger.get(), buffer_.get() + at_, left);
    buffer_ = std::move(larger);
    capacity_ = size + size / 4;
  } else {
    std::memmove(buffer_.get(), buffer_.get() + at_, left);
  }
  const std::size_t more =
      static_cast<std::size_t>(std::min<std::uint64_t>(capacity_ - left, end_ - offset_));
  file_->read(buffer_.get() + left, more, offset_);
  offset_ += more;
  at_ = 0;
  filled_ = left + more;
  return filled_ >= wanted;
}

std::string_view ScratchReader::bytes(std::size_t size) {
  if (!fill(size)) fail_packed();
  const std::string_view out(buffer_.get() + at_, size);
  at_ += size;
  return out;
}

bool ScratchReader::text(std::string_view& out) {
  if (ended()) return false;
  constexpr std::size_t kLongestNumber = 10;
  fill(kLongestNumber);
  std::string_view rest(buffer_.get() + at_, filled_ - at_);
  const std::uint64_t size = take_number(rest);
  at_ = filled_ - rest.size();
  out = bytes(size);
  return true;
}

}  // namespace vfm::io
