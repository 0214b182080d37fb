// A program that has the lock of a file that programs share (share/shared_file.h), and is stopped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "share/pipe_lock.h"
#include "share/shared_file.h"

/// Ends with this object.
class StoppedLocker {
 public:
  explicit StoppedLocker(const std::string& path) : pid_(::fork()) {
    if (pid_ == 0) {
      const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      const std::int64_t self = ::getpid();
      const bool has = vfm::share::lock_byte(fd, F_OFD_SETLKW, F_WRLCK, 0) == 0 &&
                       ::pwrite(fd, &self, sizeof self, kPlace) == sizeof self;
      ::raise(has ? SIGSTOP : SIGKILL);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, WUNTRACED) == pid_);
    REQUIRE(WIFSTOPPED(status));
  }
  ~StoppedLocker() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StoppedLocker(const StoppedLocker&) = delete;
  StoppedLocker& operator=(const StoppedLocker&) = delete;
  pid_t pid() const { return pid_; }

 private:
  static constexpr off_t kPlace = offsetof(vfm::share::SharedHead, locker);
  pid_t pid_;
};
