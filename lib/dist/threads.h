// A World whose ranks are threads of one process. It proves on one machine, and under sanitizers,
// that a training on many ranks gives the same result, and tests what the ranks exchange.
//
// It is stricter than MPI, so that code that runs here also runs with MPI: sends are not buffered,
// and each collective of a group is compared with what the other ranks call. A wait that would
// never end is an Error that says which rank waits where. Nothing depends on time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "dist/world.h"

namespace vfm::dist {

/// Calls `rank` in `size` threads, each with a World of its own, and returns when all have ended.
/// When one throws, every collective of the others throws, too. Then this function throws the
/// exception of the lowest rank that failed by itself. World::end_all() throws.
void thread_worlds(int size, const std::function<void(World&)>& rank);

}  // namespace vfm::dist
