// A lock that a thread may take several times, and give up altogether while it waits for the others
// to change something. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

namespace vfm::emulation {

class Monitor {
 public:
  void lock() {
    std::unique_lock held(mutex_);
    const auto self = std::this_thread::get_id();
    if (owner_ != self) take(held);
    ++depth_;
  }
  void unlock() {
    const std::lock_guard held(mutex_);
    if (--depth_ == 0) leave();
  }
  /// How often something was changed; for who has the lock.
  std::uint64_t changes() const { return changes_; }
  /// Of who has the lock. Returns when that is no more so often, or false after that time.
  bool wait_for_change(std::uint64_t since, std::chrono::seconds most) {
    std::unique_lock held(mutex_);
    const int depth = std::exchange(depth_, 0);
    leave();
    const bool in_time = changed_.wait_for(held, most, [&] { return changes_ != since; });
    take(held);
    depth_ = depth;
    return in_time;
  }
  void change() {
    const std::lock_guard held(mutex_);
    ++changes_;
    changed_.notify_all();
  }

 private:
  void take(std::unique_lock<std::mutex>& held) {
    free_.wait(held, [&] { return owner_ == std::thread::id(); });
    owner_ = std::this_thread::get_id();
  }
  void leave() {
    owner_ = {};
    free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable free_, changed_;
  std::thread::id owner_;
  int depth_ = 0;
  std::atomic<std::uint64_t> changes_ = 0;
};

}  // namespace vfm::emulation
