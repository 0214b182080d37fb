// What would make a rank need less memory, of what would help: for refusals, warnings and signs.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/cost/memory.h"

namespace vfm::train {

/// "set 'parallel.shard' full, set 'optimizer.moments' bf16 or take a smaller model": of what a run
/// of `recipe` on so many ranks does not do yet. Where what lasts from step to step fills `usable`
/// bytes by itself, nothing that makes activations less is named; where it is the lesser part of
/// the need, nothing that makes it less.
std::string less_memory(const Recipe& recipe, int ranks, models::Recompute recompute, Device device,
                        const MemoryNeed& need, double usable);

}  // namespace vfm::train
