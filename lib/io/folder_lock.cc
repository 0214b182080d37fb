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

// Returns true if another program keeps the lock for `lock_patience`. A killed program keeps its
// locks until the system has removed the process, which takes a while on a busy machine.
bool is_taken(int fd) {
  const auto end = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    // The file system has no locks. The folder is then used without one.
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
