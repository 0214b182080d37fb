// SPDX-License-Identifier: Apache-2.0
#include "models/link_time.h"

#include <algorithm>
#include <cmath>

namespace vfm::models {
namespace {

bool between_two_ranks(dist::Operation operation) {
  using dist::Operation;
  return operation == Operation::exchange || operation == Operation::send ||
         operation == Operation::receive;
}

}  // namespace

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
