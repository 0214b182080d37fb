// SPDX-License-Identifier: Apache-2.0
#include "io/at_once.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace vfm::io {

void for_each_at_once(std::size_t count, std::size_t threads,
                      const std::function<void(std::size_t)>& act) {
  if (threads <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i)
      act(i);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards what follows
  std::size_t failed = count;
  std::exception_ptr failure;
  std::atomic<bool> ended = false;
  const auto work = [&] {
    for (std::size_t i; !ended && (i = next++) < count;) {
      try {
        act(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        ended = true;
        if (i < failed) failed = i, failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> pool;
  for (std::size_t i = 0; i < std::min(threads, count); ++i)
    pool.emplace_back(work);
  for (std::thread& thread : pool)
    thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vfm::io
