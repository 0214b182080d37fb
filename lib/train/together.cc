// SPDX-License-Identifier: Apache-2.0
#include "train/together.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/stop.h"

namespace vfm::train {

void on_all_ranks(dist::World& world, const std::function<void()>& act,
                  const std::function<void()>& clean_up) {
  std::exception_ptr failure;
  bool stopped = false;
  try {
    act();
  } catch (const Stopped&) {
    // A signal ends each rank by itself, and nothing is said of it.
    stopped = stop_signal() != 0 || world.size() == 1;
    failure =
        stopped ? std::current_exception() : std::make_exception_ptr(Error(full_disk_message()));
  } catch (...) {
    failure = std::current_exception();
  }
  const std::vector<std::string> failed = world.gather(failure ? "failed" : "");
  std::string first;  // that failed; "": none
  for (std::size_t rank = 0; rank < failed.size() && first.empty(); ++rank)
    if (!failed[rank].empty()) first = std::to_string(rank);
  if (!first.empty() && clean_up) clean_up();  // on rank 0: nobody else has an answer yet
  first = dist::broadcast(world, first);
  if (first.empty()) return;
  if (failure && (stopped || first == std::to_string(world.rank())))
    std::rethrow_exception(failure);
  world.barrier();  // to which the rank that failed does not come
  fail("rank {} has failed", first);
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

}  // namespace vfm::train
