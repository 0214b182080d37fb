// SPDX-License-Identifier: Apache-2.0
#include "base/run_end.h"

#include <atomic>
#include <mutex>

namespace vfm {
namespace {

std::atomic<bool> g_ends{false};
std::mutex g_mutex;
std::string g_message;  // guarded by g_mutex

}  // namespace

void end_run(const std::string& message) {
  const std::lock_guard lock(g_mutex);
  if (!g_ends) g_message = message;
  g_ends = true;
}

bool run_ends() noexcept {
  return g_ends.load(std::memory_order_relaxed);
}

std::string run_end_message() {
  const std::lock_guard lock(g_mutex);
  return g_message;
}

void forget_run_end() {
  const std::lock_guard lock(g_mutex);
  g_ends = false;
  g_message.clear();
}

}  // namespace vfm
