// Counters of a program's results: `ready` counts the results that could be handed on in order,
// and `handed` the results that were handed on.
//
// share/ordered.h counts the results if Slots::set_flow() was called. A result that waits for an
// earlier result is not ready. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace vfm::share {

struct OrderedFlow {
  std::atomic<std::int64_t> ready = 0, handed = 0;
};

}  // namespace vfm::share
