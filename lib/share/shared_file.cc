// SPDX-License-Identifier: Apache-2.0
#include "share/shared_file.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "base/stop.h"
#include "share/pipe_lock.h"

namespace vfm::share {
namespace {

constexpr off_t kFileLock = 0, kFirstLife = 1;  // locked bytes
constexpr off_t kLocker = offsetof(SharedHead, locker);

off_t life_of(std::size_t record) {
  return kFirstLife + static_cast<off_t>(record);
}

}  // namespace

std::uint64_t pipe_clock() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

bool wait_for_call(std::atomic<std::uint32_t>& call, std::uint32_t seen) {
  const timespec turn{0, static_cast<long>(kSharedTurn)};
  return ::syscall(SYS_futex, &call, FUTEX_WAIT, seen, &turn, nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

void call(std::atomic<std::uint32_t>& call, int most) {
  ++call;
  ::syscall(SYS_futex, &call, FUTEX_WAKE, most, nullptr, nullptr, 0);
}

bool take_in_turn(std::atomic<std::uint32_t>& call, const std::atomic<std::uint32_t>& takes,
                  const std::atomic<bool>* over, const std::function<void(int by)>& count,
                  const std::function<Taken(bool out_of_turn)>& take) {
  count(1);
  bool out_of_turn = false;
  try {
    for (;;) {
      check_stop();
      if (over && *over) break;
      const std::uint32_t seen = call;
      const Taken taken = take(out_of_turn);
      if (taken == Taken::yes) return true;
      const std::uint32_t taken_before = takes;
      const bool called = wait_for_call(call, seen);
      out_of_turn = !called && taken == Taken::left && takes == taken_before;
    }
  } catch (...) {
    count(-1);
    throw;
  }
  count(-1);
  return false;
}

SharedFile::SharedFile(const std::string& path, std::size_t size, std::string_view words,
                       std::string_view option)
    : path_(path), option_(option) {
  try {
    open();
    map(size, words);
  } catch (...) {
    close();
    throw;
  }
  unlock();
}

SharedFile::~SharedFile() {
  close();
}

void SharedFile::close() {
  if (memory_) ::munmap(memory_, size_);
  if (life_fd_ >= 0) ::close(life_fd_);
  if (fd_ >= 0) ::close(fd_);
}

SharedFile::Locked::Locked(SharedFile& file)
    : file_(file),
      lock_(file.mutex),
      stops_(await_byte(file.fd_, kFileLock, file.path_, kLocker) == ECANCELED) {
  if (!stops_) file.head().locker = ::getpid();
}

SharedFile::Locked::~Locked() {
  if (!stops_) file_.unlock();
}

void SharedFile::Locked::need() const {
  if (stops_) throw Stopped();
}

bool SharedFile::try_lock() {
  if (lock_byte(fd_, F_OFD_SETLK, F_WRLCK, kFileLock) != 0) return false;
  head().locker = ::getpid();
  return true;
}

void SharedFile::unlock() {
  head().locker = 0;
  lock_byte(fd_, F_OFD_SETLK, F_UNLCK, kFileLock);
}

/// Returns with the file's lock, which the constructor releases.
void SharedFile::open() {
  if (path_.empty()) {
    fd_ = ::memfd_create("vfm", MFD_CLOEXEC);
    if (fd_ < 0) fail_errno(errno, "cannot make memory for what threads share");
    return;
  }
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd_ < 0) fail_usage("cannot open '{}' for {}: {}", path_, option_, errno_text(errno));
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode))
    fail_usage("'{}' is not a file; {} needs one of its own", path_, option_);
  const int error = await_byte(fd_, kFileLock, path_, kLocker);
  if (error == ECANCELED) throw Stopped();
  if (error != 0)
    fail_usage("cannot lock '{}' for {}: {}; name a file on a disk of this machine", path_, option_,
               errno_text(error));
}

void SharedFile::map(std::size_t size, std::string_view words) {
  struct stat st {};
  ::fstat(fd_, &st);  // again, with the lock, since another program may have made the file
  std::string found(words.size(), '\0');
  const bool read =
      ::pread(fd_, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size());
  const bool blank = std::all_of(found.begin(), found.end(), [](char c) { return c == 0; });
  const bool fits =
      read && static_cast<std::size_t>(st.st_size) == size && (found == words || blank);
  if (st.st_size != 0 && !fits)
    fail_usage("'{}' is not empty, and not of {} of this version; name another file", path_,
               option_);
  // Allocates disk space, since a write to a mapped page without disk space would kill the program.
  if (const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(size))) {
    // A file with a part of the size would be refused later.
    if (st.st_size == 0 && ::ftruncate(fd_, 0) != 0)
      fail_usage("cannot make '{}' for {}: {}; remove it", path_, option_, errno_text(error));
    fail_usage("cannot make '{}' for {}: {}", path_, option_, errno_text(error));
  }
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) fail_usage("cannot map '{}' for {}: {}", path_, option_, errno_text(errno));
  memory_ = at;
  size_ = size;
  head().locker = ::getpid();
  std::memcpy(memory_, words.data(), words.size());
}

bool SharedFile::lives(std::size_t record) const {
  short found = F_UNLCK;
  return lock_byte(fd_, F_OFD_GETLK, F_WRLCK, life_of(record), &found) != 0 || found != F_UNLCK;
}

bool SharedFile::live(std::size_t record, bool apart) {
  if (apart && life_fd_ < 0) {
    life_fd_ = ::open(vfm::format("/proc/self/fd/{}", fd_).c_str(), O_RDWR | O_CLOEXEC);
    if (life_fd_ < 0) fail_errno(errno, "cannot open what programs share once more");
  }
  return lock_byte(apart ? life_fd_ : fd_, F_OFD_SETLK, F_WRLCK, life_of(record)) == 0;
}

}  // namespace vfm::share
