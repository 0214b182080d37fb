// Inside lib/dist only: a thread that runs the functions (errands) given to it, and polls for
// messages in between.
//
// MPI moves a message only while a thread calls it, and only this thread calls it. So messages move
// while the thread that gave the errands computes. This thread polls without a pause for a moment
// after each errand, and after a poll that took long, since then a message moved. Otherwise it
// sleeps longer and longer between polls, so it takes almost no processor time from computing. When
// the last poll said that nothing is left, it sleeps until the next errand.
// Thread-safety: only the thread that made the object gives errands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace vfm::dist {

class ErrandThread {
 public:
  using Errand = std::function<void()>;

  ErrandThread();
  /// Runs the errands that were given, then ends the thread.
  ~ErrandThread();
  ErrandThread(const ErrandThread&) = delete;
  ErrandThread& operator=(const ErrandThread&) = delete;

  /// Returns when this errand and all earlier ones are done; throws what the errand throws.
  void call(const Errand& errand);
  /// Returns at once. The errand must not throw.
  void post(Errand errand);
  /// Sets the function that polls between errands. It returns whether anything is left to poll for,
  /// and must not throw. Call this from an errand.
  void look_after(std::function<bool()> look) { look_ = std::move(look); }

 private:
  void run();
  bool sleep(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Errand> errands_;
  bool end_ = false;
  // Used by the thread alone.
  std::function<bool()> look_;
  bool busy_ = false;       // the last poll said that something is left
  double awake_until_ = 0;  // seconds of the steady clock
  double pause_ = 0;        // seconds of the next sleep
  std::thread thread_;      // last, since it uses the other members
};

}  // namespace vfm::dist
