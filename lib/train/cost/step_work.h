// What the device of one rank does in an optimizer step, kernel by kernel: what its time can be
// told from, and what that rank sends. Found as train/cost/memory.h finds memory, by a step on
// Device::meta. Not in it: samples that ranks share, a few numbers a step.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "data/latents.h"
#include "dist/traffic.h"
#include "models/dit/network.h"
#include "tensor/meta.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// What a rank sends along an axis by one operation.
struct SentMessages {
  double calls = 0, bytes = 0;
};

/// What is done for all packs, with what is recomputed; and beside them: the gradients' norm,
/// AdamW. The average is kept every few steps: of it the mean. One that the host keeps takes no
/// time of the device.
struct StepWork {
  KernelCalls packs, optimizer;
  std::vector<CopyBeside> copies;      ///< of 'model.offload', beside `packs`
  std::map<std::string, double> sent;  ///< bytes, by axis (dist/traffic.h)
  /// The same by axis and operation.
  std::map<std::pair<std::string, dist::Operation>, SentMessages> messages;
};

/// The arguments are those of memory_need(), but `pack` must not be empty. Of one rank.
StepWork step_work(const Recipe& recipe, int ranks, models::Recompute recompute, Device device,
                   const std::vector<data::Entry>& pack, int rank = 0);

/// Sums by kind, that of a WorkKind (tensor/meta.h) or "optimizer": {"products": {"flops",
/// "bytes"},
/// ...}, of those that there are.
Json work_by_kind(const StepWork& work);
/// Of each kernel: [{"name", "kind", "calls", "flops", "bytes"}, ...].
Json work_by_kernel(const StepWork& work);

}  // namespace vfm::train
