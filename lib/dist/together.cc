// SPDX-License-Identifier: Apache-2.0
#include "dist/together.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/run_end.h"
#include "base/stop.h"

namespace vfm::dist {

Verdict attempt_on_all_ranks(World& world, const std::function<void()>& act,
                             const std::function<void()>& clean_up) {
  Verdict verdict;
  try {
    act();
  } catch (const Stopped&) {
    // A signal ends each rank by itself, and nothing is said of it.
    if (stop_signal() != 0 || world.size() == 1)
      verdict.failure = std::current_exception();
    else
      verdict.failure = std::make_exception_ptr(Error(run_end_message()));
  } catch (...) {
    verdict.failure = std::current_exception();
  }
  const std::vector<std::string> failed = world.gather(verdict.failure ? "failed" : "");
  for (std::size_t rank = 0; rank < failed.size() && verdict.rank < 0; ++rank)
    if (!failed[rank].empty()) verdict.rank = static_cast<int>(rank);
  if (verdict.rank >= 0 && clean_up) clean_up();  // on rank 0: nobody else has an answer yet
  world.broadcast(std::as_writable_bytes(std::span(&verdict.rank, 1)));
  return verdict;
}

void fail_on_all_ranks(World& world, const Verdict& verdict) {
  if (verdict.failure && verdict.rank == world.rank()) std::rethrow_exception(verdict.failure);
  // A launcher whose first rank has said why it ends sends the others a signal: they say nothing.
  if (stop_signal() != 0) throw Stopped();
  world.barrier();  // to which the rank that failed does not come
  fail("rank {} has failed", verdict.rank);
}

void on_all_ranks(World& world, const std::function<void()>& act,
                  const std::function<void()>& clean_up) {
  const Verdict verdict = attempt_on_all_ranks(world, act, clean_up);
  if (verdict.rank >= 0) fail_on_all_ranks(world, verdict);
}

std::vector<int> deal(std::span<const std::uint64_t> sizes, int ranks) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return sizes[i]; });
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<int> rank_of(sizes.size());
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(loads);
    rank_of[i] = static_cast<int>(least - loads.begin());
    *least += sizes[i];
  }
  return rank_of;
}

}  // namespace vfm::dist
