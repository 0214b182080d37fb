// Gathers requests of several threads for one worker. Only lib/workers uses this header.
//
// Threads that wait for a worker are called leaders. There are at most as many leaders as GPUs. A
// leader that gets a worker takes the waiting calls, in order of arrival, and sends them together.
// The other threads wait until their calls are done. If a group of calls kills workers
// (Error{crash}), each call of the group is sent once more, alone, so that only the faulty call
// fails. A waiting thread gives back its slot of the processor (Slots::Away). Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "share/slots.h"

namespace vfm::workers {

template <class Call>
class Gathered {
 public:
  /// Sets the largest number of leaders, and the largest total weight `most` of the calls that a
  /// leader takes.
  Gathered(std::size_t leaders, std::size_t most) : leaders_(leaders), most_(most) {}

  /// Waits until `call` is done. If this thread becomes a leader, run() calls `lead`, which must
  /// get a worker, call Take once, do all calls that Take returns, and then return. Throws what
  /// `lead` throws.
  using Take = std::function<std::vector<Call*>()>;
  void run(Call& call, std::size_t weight, const std::function<void(const Take&)>& lead) {
    Entry own{&call, weight};
    const share::Slots::Away away;  // ends after the lock is released
    std::unique_lock lock(mutex_);
    waiting_.push_back(&own);
    while (!own.done) {
      if (own.taken || leading_ == leaders_) {
        changed_.wait(lock);
        continue;
      }
      ++leading_;
      lock.unlock();
      std::vector<Entry*> took;
      std::exception_ptr error;
      bool apart = false;
      try {
        lead([&] { return take(took); });
      } catch (const Error& crash) {
        error = std::current_exception();
        apart = crash.cause() == Cause::crash && took.size() > 1;
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --leading_;
      if (apart) {
        return_apart(took);
      } else if (error && took.empty() && !own.taken) {
        std::erase(waiting_, &own);
        took.push_back(&own);
      }
      for (Entry* const entry : took) {
        entry->error = error;
        entry->done = true;  // the entry may be destroyed from here on
      }
      changed_.notify_all();
    }
    if (own.error) std::rethrow_exception(own.error);
  }

 private:
  struct Entry {
    Call* call;
    std::size_t weight;
    bool taken = false, done = false;
    std::exception_ptr error = nullptr;
  };

  std::vector<Call*> take(std::vector<Entry*>& took) {
    const std::lock_guard lock(mutex_);
    std::vector<Call*> calls;
    std::size_t sum = 0;
    while (!waiting_.empty() && (sum == 0 || sum + waiting_.front()->weight <= most_)) {
      Entry* const entry = waiting_.front();
      waiting_.pop_front();
      entry->taken = true;
      sum += entry->weight;
      took.push_back(entry);
      calls.push_back(entry->call);
    }
    return calls;
  }

  /// Moves the calls to the front of the queue, each with the weight `most_`, so that each call is
  /// taken alone. The caller must hold the lock.
  void return_apart(std::vector<Entry*>& took) {
    for (; !took.empty(); took.pop_back()) {
      took.back()->taken = false;
      took.back()->weight = std::max(took.back()->weight, most_);
      waiting_.push_front(took.back());
    }
  }

  const std::size_t leaders_, most_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::size_t leading_ = 0;
  std::deque<Entry*> waiting_;
};

}  // namespace vfm::workers
