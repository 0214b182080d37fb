// SPDX-License-Identifier: Apache-2.0
#include "io/at_once.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace vfm::io {

void at_once(std::size_t count, bool far, const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kThreads = 16;
  if (!far || count < 2) {
    for (std::size_t i = 0; i < count; ++i)
      work(i);
    return;
  }
  std::atomic<std::size_t> next{0}, failed{count};
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < failed;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i >= failed) continue;
        failed = i;
        error = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(count, kThreads); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread& thread : threads)
    thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace vfm::io
