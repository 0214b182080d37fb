// SPDX-License-Identifier: Apache-2.0
#include "models/link_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace vfm::models {
namespace {

bool between_two_ranks(dist::Operation operation) {
  using dist::Operation;
  return operation == Operation::exchange || operation == Operation::send ||
         operation == Operation::receive;
}

/// Of the group that begins at rank `begin`, on the machine that has fewest of it.
int fewest_on_node(std::span<const int> places, int begin, int per_node) {
  int fewest = static_cast<int>(places.size()), here = 0, node = -1;
  for (const int place : places) {
    const int next = (begin + place) / per_node;
    if (next != node && here > 0) fewest = std::min(fewest, here), here = 0;
    node = next, ++here;
  }
  return std::min(fewest, here);
}

}  // namespace

GroupOnNodes worst_group(std::span<const int> places, int all, int per_node) {
  GroupOnNodes worst{static_cast<int>(places.size()), static_cast<int>(places.size())};
  std::vector<bool> taken(static_cast<std::size_t>(all));
  int end = 0;  // of the groups so far
  for (int begin = 0; begin < all && worst.on_node > 1; ++begin) {
    if (taken[static_cast<std::size_t>(begin)]) continue;
    // From here on all comes again as it was.
    if (begin > 0 && begin == end && begin % per_node == 0) break;
    for (const int place : places)
      if (begin + place < all) taken[static_cast<std::size_t>(begin + place)] = true;
    end = std::max(end, begin + places.back() + 1);
    worst.on_node = std::min(worst.on_node, fewest_on_node(places, begin, per_node));
  }
  return worst;
}

GroupOnNodes worst_neighbours(int ranks, int per_node) {
  std::vector<int> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), 0);
  return worst_group(places, std::lcm(ranks, per_node), per_node);
}

double link_seconds(const Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                    double calls, double bytes) {
  const double ranks = group.ranks, here = group.on_node;
  if (ranks <= 1 || calls == 0) return 0;
  const bool crosses = here < ranks, pair = between_two_ranks(operation);
  const Link& slow = crosses ? gpu.across : gpu.inside;
  const double steps = pair ? 1 : std::max(1.0, std::log2(ranks));
  const double latency = calls * steps * slow.latency;
  if (!crosses) return latency + bytes / gpu.inside.bandwidth;
  if (pair) return latency + bytes / gpu.across.bandwidth;
  if (operation == dist::Operation::all_to_all) {
    const double leaves = (ranks - here) / (ranks - 1);
    return latency + std::max(bytes * leaves / gpu.across.bandwidth,
                              bytes * (1 - leaves) / gpu.inside.bandwidth);
  }
  return latency + bytes / std::min(gpu.inside.bandwidth, here * gpu.across.bandwidth);
}

}  // namespace vfm::models
