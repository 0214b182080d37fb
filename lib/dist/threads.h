// A World whose ranks are threads of one process: to prove on one machine, and under sanitizers,
// that a training on many ranks is the same, and to test what the ranks exchange.
//
// Stricter than MPI, so that what runs here runs there: sends are not buffered, each collective of
// a group is compared with what the other ranks call, and what would wait for ever is an Error that
// says which rank waits where. Nothing depends on time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "dist/world.h"

namespace vfm::dist {

/// Calls `rank` in `size` threads, each with a World of its own, and returns when all have ended.
/// When one throws, every collective of the others throws, too, and the exception of the lowest
/// rank that failed by itself is thrown here. World::end_all() throws.
void thread_worlds(int size, const std::function<void(World&)>& rank);

}  // namespace vfm::dist
