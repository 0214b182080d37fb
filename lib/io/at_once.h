// Does many small things that each wait for a server, several at once. The body is in
// io/remote/errands.cc. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace vfm::io {

/// Requests of one process to a store that are worth while at once.
inline constexpr std::size_t kRequestsAtOnce = 32;

/// Calls act(i) for all i below `count`, in this thread and at most `threads` - 1 others. With one
/// thread, calls them in order. Returns when all calls have ended. Rethrows the first exception,
/// after which no other call begins.
void for_each_at_once(std::size_t count, std::size_t threads,
                      const std::function<void(std::size_t)>& act);

}  // namespace vfm::io
