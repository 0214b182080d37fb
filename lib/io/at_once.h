// Many small requests to a server at once, since each waits for the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace vfm::io {

/// Calls `work` with 0 to count - 1, on up to 16 threads, in any order. On a disk (`far` is false),
/// calls it in order on this thread. Throws the exception of the smallest number that had one.
/// After an exception, later numbers may be left out.
void at_once(std::size_t count, bool far, const std::function<void(std::size_t)>& work);

}  // namespace vfm::io
