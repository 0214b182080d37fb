// The processes of one launch: how many threads and which GPU each takes, and their world, in which
// the failure of one ends all.
//
// Not here: what the launcher says of them (cli/runner.h). Thread-safety: the main thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "dist/world.h"
#include "tensor/device.h"

namespace vfm::dist {

/// Threads of this process, one of `ranks`, of which `local_ranks` are on this machine: `jobs`
/// if that is not 0; else, where the launcher has bound the process to processors, as many as
/// these; else an even part of the machine's.
int threads_per_rank(int jobs, int ranks, int local_ranks);

/// The device that choose_device(`wanted`) gives. Ranks of one machine take a GPU each, but where
/// what started them has chosen what each sees (`shown`), and that is one alone.
Device rank_device(const std::string& wanted, int local_rank, int local_ranks, bool shown);

/// Calls `work` with the world of the launch, of `ranks` processes, and returns what it returns.
/// Where it throws on one of several, that rank says so, with its number and host, and every
/// process ends, with status 2 for an Error{usage}, else 1: the others would wait for it for ever.
/// What all refuse together (dist/together.h) one says, and each throws an Error{usage} without
/// words, when it has left the world in order.
/// Stopped passes, and ends one process, which the launcher notices.
long with_world(int ranks, const std::function<long(World&)>& work);

}  // namespace vfm::dist
