// The processes of one launch: how many threads and which GPU each takes, and the world that they
// share. When one process fails, all end.
//
// Not here: reading the launcher's environment (cli/runner.h). Thread-safety: the main thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "dist/world.h"
#include "tensor/device.h"

namespace vfm::dist {

/// How many threads this process should use. The launch has `ranks` processes, `local_ranks` of
/// them on this machine. Returns `jobs` unless it is 0. Otherwise, if the launcher has bound the
/// process to some processors, their number; if not, an equal share of the machine's processors.
int threads_per_rank(int jobs, int ranks, int local_ranks);

/// Returns the device that choose_device(`wanted`) gives. Ranks on one machine each take the GPU
/// with their local number. If the launcher has chosen what each rank sees (`shown`) and this rank
/// sees a single GPU, it takes that one.
Device rank_device(const std::string& wanted, int local_rank, int local_ranks, bool shown);

/// Calls `work` with the world of the launch, which has `ranks` processes, and returns its result.
/// If `work` throws on one of several ranks, that rank logs the error with its number and host.
/// Then every process ends, since the others would wait for ever: with status 2 for an
/// Error{usage}, 5 for ExchangeFailed, else 1. If a rank is lost or silent, every process ends with
/// status 5, too. If all ranks refuse together (dist/together.h), one logs the reason, and each
/// rank leaves the world in order and throws an Error{usage} without text. Stopped is thrown on,
/// and ends only its own process; the launcher notices that.
long with_world(int ranks, const std::function<long(World&)>& work);

}  // namespace vfm::dist
