// SPDX-License-Identifier: Apache-2.0
#include "workers/wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/units.h"

namespace vfm::workers {
namespace {

constexpr std::uint64_t kLeastRoom = std::uint64_t{1} << 20;

}  // namespace

bool is_sound(const Word& word) {
  return word.say >= Say::answer && word.say <= Say::end && word.level >= LogLevel::error &&
         word.level <= LogLevel::debug;
}

Error told_error(const Word& word, const std::string& text) {
  if (word.kind == ErrorKind::usage || word.kind == ErrorKind::device)
    return Error(text, word.kind);
  return Error(text, share::checked_cause(word.cause, Cause::other));
}

Room::Room(std::uint64_t most)
    : memory_(::memfd_create("vfm-gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING)), most_(most) {
  if (memory_.get() < 0 || ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    fail_errno(errno, "cannot make memory for a worker");
}

void Room::map(std::uint64_t bytes) {
  if (!mapping_ || mapping_->size() < bytes)
    mapping_ = std::make_shared<const share::MappedMemory>(memory_.get(), bytes, true);
}

std::uint64_t Room::put(const Parcel& parcel) {
  const PackedParcel packed(parcel);
  const std::uint64_t bytes = packed.bytes();
  if (bytes > most_)
    fail_as(Cause::limit, "{} are more than the {} that a worker is handed at once",
            format_bytes(bytes), format_bytes(most_));
  if (!mapping_ || mapping_->size() < bytes) {
    const std::uint64_t before = mapping_ ? mapping_->size() : 0;
    const std::uint64_t size = std::min(most_, std::max({bytes, 2 * before, kLeastRoom}));
    // Allocates the memory now, since a write without memory would kill the process.
    int error = 0;
    do {
      error = ::posix_fallocate(memory_.get(), 0, static_cast<off_t>(size));
    } while (error == EINTR);
    if (error != 0)
      fail_as(Cause::memory, "cannot have {} to hand to a worker: {}", format_bytes(size),
              errno_text(error));
    map(size);
  }
  packed.write(reinterpret_cast<std::byte*>(mapping_->data()));
  return bytes;
}

Parcel Room::take(std::uint64_t bytes, bool views) {
  struct stat info {};
  if (::fstat(memory_.get(), &info) != 0) fail_errno(errno, "cannot look at a worker's memory");
  if (bytes > most_ || bytes > static_cast<std::uint64_t>(info.st_size))
    fail_as(Cause::crash, "a worker says that {} bytes are where {} are", bytes, info.st_size);
  map(bytes);
  const std::span all(reinterpret_cast<const std::byte*>(mapping_->data()),
                      static_cast<std::size_t>(bytes));
  return views ? read_parcel(all, mapping_) : read_parcel(all);
}

}  // namespace vfm::workers
