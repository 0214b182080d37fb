// The kernels that the device of one rank runs in an optimizer step, from which its time is
// predicted, and the messages that the rank sends. Found by a step on Device::meta, as the memory
// in train/cost/memory.h. If there are several networks, all are due. Samples that ranks share, and
// a few numbers a step, are not included. Thread-safety: free functions, any thread.
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

/// Messages of a rank along one axis by one operation.
struct SentMessages {
  double calls = 0, bytes = 0;
};

/// `packs` is the work on all packs, with recomputation. `optimizer` is the rest: the gradients'
/// norm and AdamW, and the mean work of an average that changes every few steps. An average that
/// the host keeps takes no time of the device.
struct StepWork {
  KernelCalls packs, optimizer;
  std::vector<CopyBeside> copies;      ///< copies for 'model.offload' during `packs`
  std::map<std::string, double> sent;  ///< bytes, by axis (dist/traffic.h)
  /// Messages by axis and operation.
  std::map<std::pair<std::string, dist::Operation>, SentMessages> messages;
};

/// The work of one rank. The arguments are those of memory_need(); `pack` must not be empty.
StepWork step_work(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                   const std::vector<data::Entry>& pack, int rank = 0);

/// Sums by kind, which is the name of a WorkKind (tensor/meta.h) or "optimizer": {"products":
/// {"flops", "bytes"}, ...}. Kinds without work are left out.
Json work_by_kind(const StepWork& work);
/// An entry for each kernel: [{"name", "kind", "calls", "flops", "bytes"}, ...].
Json work_by_kernel(const StepWork& work);

}  // namespace vfm::train
