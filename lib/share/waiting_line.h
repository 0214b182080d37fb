// A line of threads that wait for one thing. They leave it in the order in which they came.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

namespace vfm::share {

class WaitingLine {
 public:
  /// The place of one thread. It begins at the end of the line. When the first place is destroyed,
  /// the next one wakes, and no other.
  class Place {
   public:
    explicit Place(WaitingLine& line);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Waits until this place is the first, for `most` at the longest. Returns whether it is.
    bool await_first(std::chrono::nanoseconds most);

   private:
    WaitingLine& line_;
    std::condition_variable first_;
    std::list<Place*>::iterator at_;
  };

 private:
  std::mutex mutex_;
  std::list<Place*> places_;
};

}  // namespace vfm::share
