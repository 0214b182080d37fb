// Inside lib/dist only: a thread that does what another one tells it, and meanwhile looks after
// messages.
//
// MPI moves a message only while somebody calls it, and it is called by one thread alone: this one.
// So messages go on while the other thread computes. It looks without a break for a moment after
// each errand, and again after a look that took long, as then something moved; else it sleeps
// between looks, longer and longer, and takes next to nothing of the processor from computing. With
// nothing to look after it sleeps until there is.
// Thread-safety: one thread gives errands, that which made it.
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
  /// After the errands that were given.
  ~ErrandThread();
  ErrandThread(const ErrandThread&) = delete;
  ErrandThread& operator=(const ErrandThread&) = delete;

  /// Returns when the errand is done, after all that were given before; throws what it throws.
  void call(const Errand& errand);
  /// Returns at once. The errand throws nothing.
  void post(Errand errand);
  /// What it looks after between errands; tells whether there is anything left. Throws nothing.
  /// From an errand.
  void look_after(std::function<bool()> look) { look_ = std::move(look); }

 private:
  void run();
  bool sleep(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Errand> errands_;
  bool end_ = false;
  // Of the thread alone.
  std::function<bool()> look_;
  bool busy_ = false;       // there is something to look after
  double awake_until_ = 0;  // by the clock
  double pause_ = 0;        // the next sleep, seconds
  std::thread thread_;      // the last: it uses the others
};

}  // namespace vfm::dist
