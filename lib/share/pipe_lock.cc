// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/log.h"
#include "base/stop.h"

namespace vfm::share {
namespace {

/// Returns the first 256 bytes of a file of /proc, or "" if the file cannot be read.
std::string read_beginning(const std::string& path) {
  char text[256];
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = ::read(fd, text, sizeof text);
  ::close(fd);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

/// Returns 0 if the holder is unknown.
std::int64_t holder_at(int fd, off_t holder) {
  std::int64_t pid = 0;
  return ::pread(fd, &pid, sizeof pid, holder) == sizeof pid ? pid : 0;
}

void tell_holder(const std::string& path, std::int64_t pid) {
  if (is_stopped(pid))
    log_warning(
        "'{}' is held by {}, which is stopped; this program waits until it goes on (kill -CONT {}) "
        "or has ended",
        path, name_process(pid), pid);
  else
    log_warning("'{}' is held by {}; this program waits until it goes on or has ended", path,
                name_process(pid));
}

}  // namespace

int lock_byte(int fd, int command, short type, off_t byte, short* found) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (::fcntl(fd, command, &lock) < 0)
    if (errno != EINTR) return errno;
  if (found) *found = lock.l_type;
  return 0;
}

int await_byte(int fd, off_t byte, const std::string& path, off_t holder) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  constexpr microseconds kShortest{50}, kLongest{20'000}, kTold{2'000'000}, kPatience{500'000};
  const Clock::time_point begin = Clock::now();
  std::optional<Clock::time_point> stop;
  bool told = false;
  // Polls, since no signal would interrupt F_OFD_SETLKW: another thread handles all signals.
  for (microseconds pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    const int error = lock_byte(fd, F_OFD_SETLK, F_WRLCK, byte);
    if (error != EAGAIN && error != EACCES) return error;
    const Clock::time_point now = Clock::now();
    if (stop_requested()) {
      if (!stop) stop = now;
      if (now - *stop > kPatience || is_stopped(holder_at(fd, holder))) return ECANCELED;
    }
    if (!told && now - begin > kTold) {
      tell_holder(path, holder_at(fd, holder));
      told = true;
    }
    std::this_thread::sleep_for(pause);
  }
}

bool is_stopped(std::int64_t pid) {
  if (pid <= 0) return false;
  // "4711 (name) T ...", where the name may contain any characters.
  const std::string text = read_beginning(vfm::format("/proc/{}/stat", pid));
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'T';
}

std::string name_process(std::int64_t pid) {
  std::string name;
  if (pid > 0) name = read_beginning(vfm::format("/proc/{}/comm", pid));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name.empty() ? "another program" : vfm::format("{} (process {})", name, pid);
}

}  // namespace vfm::share
