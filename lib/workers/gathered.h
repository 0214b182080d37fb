// Inside lib/workers only: gathers requests of several threads for one worker.
//
// As many asking threads as there are cards ("leaders") each wait for a worker. A leader that gets
// a worker takes the calls that wait then, in order of arrival, and sends them together. The other
// threads wait until their calls are done. If calls killed workers (Error{crash}), each is sent
// once more, alone, so that only the call at fault fails. A thread that waits here gives back its
// slot of the processor until the wait ends (Slots::Away). Thread-safety: any thread.
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
  /// At most `leaders` threads wait for workers. A leader takes calls together up to a weight of
  /// `most`.
  Gathered(std::size_t leaders, std::size_t most) : leaders_(leaders), most_(most) {}

  /// Waits until `call` is done. `lead` gets a function that takes calls. When `lead` has a worker,
  /// it calls this function and does the calls taken; it returns only when all of them are done.
  /// Throws what `lead` throws.
  using Take = std::function<std::vector<Call*>()>;
  void run(Call& call, std::size_t weight, const std::function<void(const Take&)>& lead) {
    Entry own{&call, weight};
    const share::Slots::Away away;  // until the lock is free again
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
        entry->done = true;  // from here on it may be gone
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

  /// Returns the calls to the front of the queue, each with a weight that lets it go alone. Needs
  /// the lock.
  void return_apart(std::vector<Entry*>& took) {
    for (; !took.empty(); took.pop_back()) {
      took.back()->taken = false;
      took.back()->weight = std::max(took.back()->weight, most_);
      waiting_.push_front(took.back());
    }
  }

  const std::size_t leaders_, most_;
  std::mutex mutex_;  // guards all
  std::condition_variable changed_;
  std::size_t leading_ = 0;
  std::deque<Entry*> waiting_;
};

}  // namespace vfm::workers
