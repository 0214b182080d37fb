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

  /// Runs `act` in this thread if it has not begun.
  void run_here();
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

}  // namespace vfm::io
