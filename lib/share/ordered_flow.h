// Counts a program's results: the results ready to be handed on in order, and the results handed
// on.
//
// share/ordered.h counts them if Slots::set_flow() was called. If far fewer results are handed on
// than become ready, the reader is slower than this program, which is no bottleneck
// (share/card_rule.h). A result that waits for an earlier one is not ready. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace vfm::share {

struct OrderedFlow {
  std::atomic<std::int64_t> ready = 0, handed = 0;
};

}  // namespace vfm::share
