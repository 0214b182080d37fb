// How long what ranks send each other takes on the links of GPUs that need not be there.
// Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, for the bytes of a ring.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/traffic.h"
#include "models/gpu_table.h"

namespace vfm::models {

/// Who takes part in a message, and how many of these are on one machine.
struct GroupOnNodes {
  int ranks = 1, on_node = 1;
};

/// Seconds of what a rank sends by `operation`: `bytes` in all, in that many `calls`. Rings of a
/// group leave each node once, by the links of all its GPUs there; of an all-to-all each GPU sends
/// to other nodes by its own link; between two ranks the slowest pair counts.
double link_seconds(const Gpu& gpu, dist::Operation operation, const GroupOnNodes& group,
                    double calls, double bytes);

}  // namespace vfm::models
