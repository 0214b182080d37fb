// SPDX-License-Identifier: Apache-2.0
#include "cli/waiting.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unordered_map>
#include <utility>

#include "vfm_config.h"

#if VFM_HAVE_OWN_LIBGOMP
// How often a thread of libgomp spins before it sleeps. libgomp reads it at each wait
// (libgomp/wait.h).
extern "C" unsigned long long gomp_spin_count_var;
#endif

namespace vfm::cli {

#if VFM_HAVE_OWN_LIBGOMP
namespace {

constexpr unsigned long long kShortWait = 300;  // spins, about 6 us
constexpr auto kInterval = std::chrono::milliseconds(50);
// Bounds for the share of time in which the longest waiting thread was ready without a processor,
// as a moving average. With one busy program on the machine it is 0.3 to 0.5. Between the bounds
// nothing changes.
constexpr double kPolite = 0.25, kCalm = 0.15, kNewest = 0.25;

/// Returns the nanoseconds that a thread was ready without a processor, or -1 if the kernel does
/// not say.
std::int64_t time_ready(int thread) {
  char path[64], text[96];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0) return -1;
  text[got] = '\0';
  char* second = nullptr;
  std::strtoll(text, &second, 10);  // Skip the time on a processor.
  return std::strtoll(second, nullptr, 10);
}

/// Finds the longest time that a thread was ready without a processor since the last call.
class Wanting {
 public:
  std::int64_t longest() {
    std::unordered_map<int, std::int64_t> now;
    std::int64_t longest = 0;
    DIR* const folder = ::opendir("/proc/self/task");
    if (!folder) return 0;
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] == '.') continue;
      const int thread = std::atoi(entry->d_name);
      const std::int64_t time = time_ready(thread);
      if (time < 0) continue;
      now[thread] = time;
      if (const auto before = before_.find(thread); before != before_.end())
        longest = std::max(longest, time - before->second);
    }
    ::closedir(folder);
    before_ = std::move(now);
    return longest;
  }

 private:
  std::unordered_map<int, std::int64_t> before_;
};

void watch(unsigned long long long_wait) {
  Wanting wanting;
  double share = 0;
  auto last = std::chrono::steady_clock::now();
  for (;;) {
    std::this_thread::sleep_for(kInterval);
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::nano> passed = now - last;
    last = now;
    share += kNewest * (static_cast<double>(wanting.longest()) / passed.count() - share);
    if (share > kPolite) __atomic_store_n(&gomp_spin_count_var, kShortWait, __ATOMIC_RELAXED);
    if (share < kCalm) __atomic_store_n(&gomp_spin_count_var, long_wait, __ATOMIC_RELAXED);
  }
}

}  // namespace

void wait_politely() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  const unsigned long long long_wait = gomp_spin_count_var;
  if (long_wait <= kShortWait) return;
  std::thread(watch, long_wait).detach();
}
#else
void wait_politely() {}
#endif

}  // namespace vfm::cli
