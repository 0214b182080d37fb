// Requests that are under way while their caller does other things, by threads that the process
// keeps. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace vfm::io {

/// A function that another thread runs, or this one if it is waited for before that.
class Errand {
 public:
  /// Runs `act` soon. At most 64 errands of a process run at the same time.
  static std::shared_ptr<Errand> start(std::function<void()> act);
  ~Errand();
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;

  /// Returns when `act` has ended. Rethrows what it threw.
  void finish();
  /// Returns when `act` has ended, or will never begin. Whoever wants it to end tells it so.
  void drop() noexcept;

 private:
  friend class ErrandThreads;
  struct State;
  Errand();
  std::unique_ptr<State> state_;
};

/// Calls act(i) for all i below `count`, in this thread and at most `threads` - 1 others. Returns
/// when all have ended. Rethrows the first exception, after which no other call begins.
void for_each_at_once(std::size_t count, std::size_t threads,
                      const std::function<void(std::size_t)>& act);

}  // namespace vfm::io
