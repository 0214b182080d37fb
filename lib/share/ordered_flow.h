// Counts of a program's results that were ready to be handed on in order, and that were handed on.
//
// share/ordered.h counts them if its Slots have one. Far fewer handed on than ready shows that the
// reader is slower: the program works ahead, and is no bottleneck (share/card_rule.h). A result
// that waits for an earlier one is not ready. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace vfm::share {

struct OrderedFlow {
  std::atomic<std::int64_t> ready = 0, handed = 0;
};

}  // namespace vfm::share
