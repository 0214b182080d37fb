// Logs of tests/bench/made_stage.cc, to which several programs append.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "base/error.h"

namespace vfm {

/// Of the monotonic clock, which all programs of a machine share.
inline double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class MadeLog {
 public:
  /// "": nothing is written.
  void open(const std::string& path) {
    path_ = path;
    if (path.empty()) return;
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) fail_errno(errno, "cannot open '{}'", path);
  }
  /// In one write, so that lines of several programs do not mix. Any thread.
  void write(const std::string& lines) {
    if (fd_ >= 0 && ::write(fd_, lines.data(), lines.size()) < 0)
      fail_errno(errno, "cannot write '{}'", path_);
  }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace vfm
