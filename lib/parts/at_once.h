// Inside lib/parts only: work that waits for servers, several pieces at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/stop.h"

namespace vfm::parts {

/// Calls `act` with each of `numbers`, in any order, and on up to 32 threads if `requests` is set.
/// Throws the first exception of `act`, and Stopped.
template <class Act>
void for_each_at_once(const std::vector<int>& numbers, bool requests, const Act& act) {
  constexpr std::size_t kThreads = 32;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto work = [&] {
    try {
      for (std::size_t at = next++; at < numbers.size(); at = next++) {
        check_stop();
        act(numbers[at]);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
      next = numbers.size();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; requests && i < std::min(kThreads, numbers.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads)
    thread.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace vfm::parts
