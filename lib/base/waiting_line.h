// Threads of one program that wait for the same, in the order in which they came.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

namespace vfm {

class WaitingLine {
 public:
  /// Of one thread, from its end on. Who leaves as the first wakes the next, and nobody else.
  class Place {
   public:
    explicit Place(WaitingLine& line);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Waits until all who came before have left, at most so long. Whether they have.
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

}  // namespace vfm
