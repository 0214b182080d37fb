// SPDX-License-Identifier: Apache-2.0
#include "io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::io {

namespace {

// Whether the lock is taken by another. A program that was killed keeps its locks until the system
// has taken it apart, which lasts on a busy machine: who starts it again at once waits that long.
bool is_taken(int fd) {
  const auto end = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    // A file system without locks lets everybody in, as it always did.
    if (errno != EWOULDBLOCK) return false;
    if (std::chrono::steady_clock::now() >= end) return true;
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace

File lock_folder(const std::string& folder) {
  make_directories(folder);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(errno, "cannot open directory '{}'", folder);
  File lock(fd, folder);
  if (is_taken(fd))
    fail("'{}' is in use by another program that writes it; wait for it, or choose another folder",
         folder);
  return lock;
}

}  // namespace vfm::io
