// SPDX-License-Identifier: Apache-2.0
#include "dist/launch.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "dist/pulse.h"
#include "dist/together.h"

namespace vfm::dist {
namespace {

/// Processors that process `pid` (0: this one) may run on.
int usable_processors(pid_t pid) {
  cpu_set_t set;
  if (::sched_getaffinity(pid, sizeof set, &set) != 0) return 0;
  return CPU_COUNT(&set);
}

}  // namespace

int threads_per_rank(int jobs, int ranks, int local_ranks) {
  if (jobs > 0) return jobs;
  const int mine = usable_processors(0);
  const bool bound = ranks > 1 && mine < usable_processors(::getppid());
  return std::max(1, bound ? mine : mine / std::max(1, local_ranks));
}

Device rank_device(const std::string& wanted, int local_rank, int local_ranks, bool shown) {
  if (wanted != "cpu" && local_ranks > 1 && why_no_gpu().empty())
    use_gpu(shown && gpu_count() == 1 ? 0 : local_rank);
  return choose_device(wanted);
}

long with_world(int ranks, const std::function<long(World&)>& work) {
  auto world = ranks > 1 ? mpi_world() : self_world();
  try {
    return work(*world);
  } catch (const RefusedTogether& refused) {
    if (world->rank() == refused.rank())
      log_error(
          "{}{}", refused.what(),
          refused.all() ? "" : fmt::format(" (rank {} on host {})", refused.rank(), world->host()));
  } catch (const std::exception& error) {
    if (world->size() == 1) throw;
    world->await_end(0.2);
    world->recorder().failed(error.what());
    log_error("{} (rank {} on host {})", error.what(), world->rank(), world->host());
    const auto* known = dynamic_cast<const Error*>(&error);
    world->end_all(dynamic_cast<const ExchangeFailed*>(&error)  ? kLostStatus
                   : known && known->kind() == ErrorKind::usage ? 2
                                                                : 1);
  }
  world.reset();  // in order: none of them is waited for
  throw Error("", ErrorKind::usage);
}

}  // namespace vfm::dist
