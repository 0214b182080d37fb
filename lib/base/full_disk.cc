// SPDX-License-Identifier: Apache-2.0
#include "base/full_disk.h"

#include <atomic>
#include <cerrno>
#include <mutex>

namespace vfm {
namespace {

std::atomic<bool> g_full{false};
std::mutex g_mutex;
std::string g_message;  // guarded by g_mutex

}  // namespace

bool disk_is_full() noexcept {
  return g_full.load(std::memory_order_relaxed);
}

std::string full_disk_message() {
  const std::lock_guard lock(g_mutex);
  return g_message;
}

void forget_full_disk() {
  const std::lock_guard lock(g_mutex);
  g_full = false;
  g_message.clear();
}

void throw_output_error(int err, const std::string& message) {
  std::string text = message + ": " + errno_text(err);
  if (err != ENOSPC && err != EDQUOT && err != EROFS) throw Error(text);
  text += err == EROFS ? "; give a folder that can be written to"
                       : "; make room, then give the same command again";
  {
    const std::lock_guard lock(g_mutex);
    if (!g_full) g_message = text;
    g_full = true;
  }
  throw Stopped();
}

}  // namespace vfm
