// Settings that would make a rank need less memory: for errors, warnings and signs.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/cost/memory.h"

namespace vfm::train {

/// Lists what a run of `recipe` on `ranks` ranks does not do yet: "set 'parallel.shard' full, set
/// 'optimizer.moments' bf16 or take a smaller model". If permanent memory alone fills `usable`
/// bytes, ways to save activations are left out. If permanent memory is the smaller part of the
/// need, ways to save it are left out.
std::string less_memory(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                        const MemoryNeed& need, double usable);

}  // namespace vfm::train
