// SPDX-License-Identifier: Apache-2.0
#include "io/held_begin.h"

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/full_disk.h"

namespace vfm::io {
namespace {

std::mutex g_held_mutex;  // Guards the next two.
int g_held_fd = -1;
std::string g_held_line;  // "" if nothing is held.

}  // namespace

void hold_begin(int fd, std::string line) {
  const std::lock_guard lock(g_held_mutex);
  g_held_fd = fd;
  g_held_line = std::move(line);
}

void write_held_begin() {
  const std::lock_guard lock(g_held_mutex);
  const std::string line = std::exchange(g_held_line, {});
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t put = ::write(g_held_fd, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write standard output");
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace vfm::io
