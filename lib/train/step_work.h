// What the device of one rank does in an optimizer step, kernel by kernel: what its time can be
// told from. Found as train/memory.h finds memory, by a step on Device::meta. Not in it: what ranks
// exchange, and an average that the host keeps.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "data/latents.h"
#include "models/dit/network.h"
#include "train/recipe.h"

namespace vfm::train {

/// All calls of one kernel.
struct StepKernel {
  std::string name;  ///< in the source: "gelu_forward"
  std::string kind;  ///< that of a WorkKind (tensor/meta.h), or "optimizer": all after backward
  double calls = 0, flops = 0;
  double bytes = 0;  ///< of the tensors that it reads and writes, each once
};

/// The arguments are those of memory_need(), but `pack` must not be empty. With what is recomputed.
/// The average is kept every few steps: of it the mean.
std::vector<StepKernel> step_work(const Recipe& recipe, int ranks, models::Recompute recompute,
                                  Device device, const std::vector<data::Entry>& pack);

/// Sums by kind: {"products": {"flops", "bytes"}, ...}, of those that there are.
Json work_by_kind(const std::vector<StepKernel>& kernels);
/// All of them: [{"name", "kind", "calls", "flops", "bytes"}, ...].
Json work_by_kernel(const std::vector<StepKernel>& kernels);

}  // namespace vfm::train
