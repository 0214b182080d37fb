// Does many small things that each wait for a store, several at once.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace vfm::io {

/// Requests of one process to a store that are worth while at once.
inline constexpr std::size_t kRequestsAtOnce = 32;

/// Calls act(i) for each i below `count`, in at most `threads` threads; with one in this thread, in
/// order. Returns when all calls have returned. Throws what the call of the smallest i threw; after
/// one that throws no further one begins.
void for_each_at_once(std::size_t count, std::size_t threads,
                      const std::function<void(std::size_t)>& act);

}  // namespace vfm::io
