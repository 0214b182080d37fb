// Predicts how long messages between ranks take on the links of GPUs, which this machine need not
// have.
// Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, for the bytes of a ring.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "dist/traffic.h"
#include "models/gpu_table.h"

namespace vfm::models {

/// The number of ranks in a message, and how many of them are on the machine that has the fewest of
/// them.
struct GroupOnNodes {
  int ranks = 1, on_node = 1;
};

/// Returns the group of one axis that has the fewest ranks on a machine, because all groups wait
/// for the slowest. The first group has these `places`, ascending from 0. The other groups have the
/// same shape, side by side, up to `all` ranks. A machine has `per_node` ranks of neighbouring
/// numbers.
GroupOnNodes worst_group(std::span<const int> places, int all, int per_node);
/// The same for groups of `ranks` neighbours, for any number of groups.
GroupOnNodes worst_neighbours(int ranks, int per_node);

/// Returns the seconds of `calls` operations in which a rank sends `bytes` in all. A group's rings
/// leave each node once, over the links of all GPUs that the group has there. In an all-to-all each
/// GPU sends to other nodes over its own link. Between two ranks the slowest pair counts.
double link_seconds(const Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                    double calls, double bytes);

}  // namespace vfm::models
