// How long what ranks send each other takes on the links of GPUs that need not be there.
// Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, for the bytes of a ring.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "dist/traffic.h"
#include "models/gpu_table.h"

namespace vfm::models {

/// Who takes part in a message, and how many of these are on one machine: on that which has fewest.
struct GroupOnNodes {
  int ranks = 1, on_node = 1;
};

/// The groups of one axis, of which the first has these `places`, ascending from 0, and the others
/// the same shape side by side, up to `all` ranks; `per_node` ranks of neighbouring numbers are on
/// one machine. All wait for the slowest: so it is the group that has fewest on a machine.
GroupOnNodes worst_group(std::span<const int> places, int all, int per_node);
/// Of groups of neighbours, of which there are as many as one likes.
GroupOnNodes worst_neighbours(int ranks, int per_node);

/// Seconds of what a rank sends by `operation`: `bytes` in all, in that many `calls`. Rings of a
/// group leave each node once, by the links of all its GPUs there; of an all-to-all each GPU sends
/// to other nodes by its own link; between two ranks the slowest pair counts.
double link_seconds(const Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                    double calls, double bytes);

}  // namespace vfm::models
