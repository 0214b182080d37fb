// SPDX-License-Identifier: Apache-2.0
#include "io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "base/error.h"

namespace vfm::io {

File lock_folder(const std::string& folder) {
  make_directories(folder);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(errno, "cannot open directory '{}'", folder);
  File lock(fd, folder);
  // A file system without locks lets everybody in, as it always did.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("'{}' is in use by another program that writes it; wait for it, or choose another folder",
         folder);
  return lock;
}

}  // namespace vfm::io
