// Parallel work with ordered results: the backbone of -j in every streaming tool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/slots.h"

namespace vfm {

/// Takes items from `next` (one caller at a time, in order, until it returns nothing), runs `work`
/// on each with up to slots.threads() threads, and hands the results to `done` on the calling
/// thread *in the order of the items*. So results, files and manifests do not depend on -j.
///
/// `next` runs on worker threads without a slot (it may block on a pipe); `work` runs with one. At
/// most 2 * threads results wait. The first exception from any of the three stops the rest and is
/// rethrown after every thread has joined; results before it have been handed over. After an
/// exception from `next` or `work` no thread takes another item.
template <class In, class Out>
void for_each_ordered(Slots& slots, const std::function<std::optional<In>()>& next,
                      const std::function<Out(In&)>& work, const std::function<void(Out&)>& done) {
  struct Entry {
    std::optional<Out> out;
    std::exception_ptr error;
    bool ready = false;
  };
  std::mutex mutex;       // guards window, ended, failed
  std::mutex next_mutex;  // one caller of next at a time, and window order = input order
  std::condition_variable changed;
  std::deque<Entry> window;  // deque: references stay valid while the ends change
  bool ended = false, failed = false;
  int running = slots.threads();
  const std::size_t limit = 2 * static_cast<std::size_t>(slots.threads());

  const auto worker = [&] {
    for (;;) {
      Entry* entry = nullptr;
      std::optional<In> in;
      {
        const std::lock_guard one(next_mutex);
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return window.size() < limit || failed; });
          if (ended || failed) break;
        }
        std::exception_ptr error;
        try {
          const Slots::Waiting input(slots, PipeBoard::Wait::input);
          in = next();
        } catch (...) {
          error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        if (!in) ended = true;
        if (in || error) {
          entry = &window.emplace_back();
          if (error) entry->error = error, entry->ready = true;
        }
        changed.notify_all();
        if (!in) break;
      }
      std::optional<Out> out;
      std::exception_ptr error;
      try {
        const Slots::Hold hold(slots);
        out.emplace(work(*in));
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      entry->out = std::move(out);
      entry->error = error;
      if (error) ended = true;  // no item is begun that would be in vain
      entry->ready = true;
      changed.notify_all();
    }
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_all();
  };

  std::vector<std::thread> threads;
  for (int i = 0; i < slots.threads(); ++i)
    threads.emplace_back(worker);
  std::exception_ptr first_error;
  for (;;) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
      return (!window.empty() && window.front().ready) || (window.empty() && running == 0);
    });
    if (window.empty()) break;
    Entry entry = std::move(window.front());
    window.pop_front();
    changed.notify_all();
    lock.unlock();
    try {
      if (entry.error) std::rethrow_exception(entry.error);
      const Slots::Waiting output(slots, PipeBoard::Wait::output);
      done(*entry.out);
    } catch (...) {
      first_error = std::current_exception();
      const std::lock_guard relock(mutex);
      failed = true;
      changed.notify_all();
      break;
    }
  }
  for (std::thread& thread : threads)
    thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace vfm
