// Parallel work with results in the order of the items.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "share/ordered_window.h"
#include "share/slots.h"

namespace vfm::share {

/// Gets items from `next`, in order, until `next` returns nullopt. Runs `work` on each item, on up
/// to slots.items_at_once() threads. Passes the results to `done` on the calling thread, *in the
/// order of the items*. So results, files and manifests do not depend on -j.
///
/// `next` runs on one worker thread at a time, without a slot, since it may block on a pipe. `work`
/// runs on any worker thread, with a slot. The waiting item that comes first in order gets the next
/// free slot.
///
/// `weight`, called on the thread of `work`, returns the bytes of a result and of all memory that
/// the result owns. For a result with scarce resources, such as open files, `weight` should return
/// more. Without `weight`, at most kOrderedFew items and results for each thread exist at a time.
/// With `weight`, more items are taken while all results together weigh less than kOrderedBytes;
/// each thread may exceed this limit by one result. Give `weight` if results are small, so that all
/// slots stay busy even if items have very different lengths.
///
/// The first exception from any of these functions stops all work, and is rethrown after all
/// threads have joined. Results of items before the failed item have been passed to `done`. Throws
/// Error if the system cannot start a thread.
template <class In, class Out>
void for_each_ordered(Slots& slots, const std::function<std::optional<In>()>& next,
                      const std::function<Out(In&)>& work, const std::function<void(Out&)>& done,
                      const std::function<std::size_t(const Out&)>& weight = nullptr) {
  using Window = OrderedWindow<In, Out>;
  Window window(slots.items_at_once(), weight != nullptr, slots.flow());

  const auto read = [&] {
    const Slots::Waiting input(slots, PipeBoard::Wait::input);
    return next();
  };
  const auto serve = [&] {
    while (window.take(read)) {
      typename Window::Entry* entry = nullptr;
      std::optional<Out> out;
      std::exception_ptr error;
      std::size_t bytes = 0;
      try {
        const Slots::Hold hold(slots);
        entry = &window.begin();
        out.emplace(work(*entry->in));
        if (weight) bytes = weight(*out);
      } catch (...) {
        error = std::current_exception();
      }
      if (!entry) entry = &window.begin();  // a stop request, so there is no slot
      window.end(*entry, std::move(out), std::move(error), bytes);
    }
    window.leave();
  };

  std::vector<std::thread> threads;
  std::exception_ptr first_error;
  try {
    for (int i = 0; i < slots.items_at_once(); ++i)
      threads.emplace_back(serve);
  } catch (const std::system_error& error) {
    first_error =
        std::make_exception_ptr(Error(vfm::format("cannot start {} threads: {}; give a smaller -j",
                                                  slots.items_at_once(), error.code().message())));
    window.fail();
  }
  while (!first_error) {
    auto entry = window.front();
    if (!entry) break;
    try {
      if (entry->error) std::rethrow_exception(entry->error);
      const Slots::Waiting output(slots, PipeBoard::Wait::output);
      done(*entry->out);
      if (slots.flow()) ++slots.flow()->handed;
    } catch (...) {
      first_error = std::current_exception();
      window.fail();
    }
  }
  for (std::thread& thread : threads)
    thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace vfm::share
