// A queue of the items under way and of finished results that wait for earlier results. Only
// share/ordered.h uses it.
// Thread-safety: any thread; take() calls `next` on one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "share/ordered_flow.h"

namespace vfm::share {

/// Limit of the total weight of all items and results, if results have weights.
inline constexpr std::size_t kOrderedBytes = std::size_t{64} << 20;
/// Number of items and results that each thread may always have, whatever they weigh.
inline constexpr std::size_t kOrderedFew = 2;

template <class In, class Out>
class OrderedWindow {
 public:
  struct Entry {
    std::optional<In> in;  ///< The item, until end().
    std::optional<Out> out;
    std::exception_ptr error;  ///< The error, if the item has no result.
    std::size_t weight = sizeof(Entry);
    bool ready = false;
  };

  /// `weighed` says whether results have weights. `flow` counts the ready results; it may be null.
  OrderedWindow(int threads, bool weighed, OrderedFlow* flow)
      : few_(kOrderedFew * static_cast<std::size_t>(threads)),
        bytes_(weighed ? kOrderedBytes : 0),
        flow_(flow),
        threads_(threads) {}

  /// Waits until the limits allow an item, and queues the next item or the error of `next`. Returns
  /// false after the last item or after an error.
  bool take(const std::function<std::optional<In>()>& next) {
    const std::lock_guard one(next_mutex_);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return entries_.size() < few_ || all_ < bytes_ || failed_; });
      if (ended_ || failed_) return false;
    }
    Entry entry;
    try {
      entry.in = next();
    } catch (...) {
      entry.error = std::current_exception();
      entry.ready = true;
    }
    const bool taken = entry.in.has_value();
    const std::lock_guard lock(mutex_);
    if (!taken) ended_ = true;
    if (taken || entry.error) {
      all_ += entry.weight;
      entries_.push_back(std::move(entry));
      count_ready();
    }
    if (taken) unbegun_.push_back(&entries_.back());
    changed_.notify_all();
    return taken;
  }

  /// Returns the first item, in order, that no thread has begun. A thread calls begin() after
  /// take(), when it has a slot. The thread may get another item than it took.
  Entry& begin() {
    const std::lock_guard lock(mutex_);
    Entry* const entry = unbegun_.front();
    unbegun_.pop_front();
    return *entry;
  }

  /// Ends an item with its result `out` or with `error`.
  void end(Entry& entry, std::optional<Out> out, std::exception_ptr error, std::size_t weight) {
    entry.in.reset();
    const std::lock_guard lock(mutex_);
    entry.out = std::move(out);
    entry.error = std::move(error);
    entry.weight += weight;
    all_ += weight;
    if (entry.error) ended_ = true;  // further results are useless
    entry.ready = true;
    count_ready();
    changed_.notify_all();
  }

  /// Reports that this thread takes no more items.
  void leave() {
    const std::lock_guard lock(mutex_);
    --threads_;
    changed_.notify_all();
  }

  /// Waits for the next result in order. Returns nullopt after the last result.
  std::optional<Entry> front() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entries_.empty() ? threads_ == 0 : entries_.front().ready; });
    if (entries_.empty()) return std::nullopt;
    std::optional<Entry> entry(std::move(entries_.front()));
    entries_.pop_front();
    --ready_;
    all_ -= entry->weight;
    changed_.notify_all();
    return entry;
  }

  /// Reports that the caller wants no more results.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  /// Counts the results that wait for no earlier item.
  void count_ready() {
    for (; ready_ < entries_.size() && entries_[ready_].ready; ++ready_)
      if (flow_) ++flow_->ready;
  }

  const std::size_t few_, bytes_;
  OrderedFlow* const flow_;
  std::mutex next_mutex_;  // locked before mutex_
  std::mutex mutex_;       // guards the fields below
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::deque<Entry*> unbegun_;  // items that no thread has begun, in order
  std::size_t all_ = 0;         // summed weight of all entries
  std::size_t ready_ = 0;       // number of leading entries that are ready
  bool ended_ = false, failed_ = false;
  int threads_;
};

}  // namespace vfm::share
