// How many results of a program are ready to be handed on in their order, and how many were.
//
// base/ordered.h counts them where its Slots say so. Far fewer handed on than ready tell that
// whoever reads them is slower: what the program does is done ahead, and is no bottleneck
// (base/card_rule.h). A result that waits for one before it is not ready.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace vfm {

struct OrderedFlow {
  std::atomic<std::int64_t> ready = 0, handed = 0;
};

}  // namespace vfm
