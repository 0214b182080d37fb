// What a pass through the network costs one of the ranks that share it, and how long what they
// exchange takes on GPUs that need not be there. Found on Device::meta, as
// models/dit/network_cost.h has it. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "generate/clip_ranks.h"
#include "models/dit/network_cost.h"
#include "models/predict.h"

namespace vfm::generate {

/// The network, and what goes through it.
struct PassWork {
  const models::NetworkConfig& network;
  const std::vector<std::vector<models::AdapterShape>>& adapters;
  models::NetworkSample sample;
  std::int64_t samples = 1;  ///< with guidance two of them
  DType compute = DType::f32;
  models::Fp8Parts fp8;
  Device device = Device::cpu;
  std::optional<ops::RowFormat> quantize = {};
};

struct SharedPass {
  models::PartCost cost;  ///< of the rank that leads
  /// What it waits for the others, by sort of exchange. Of a GPU that was asked for.
  std::vector<models::TimeLine> exchanges;
};

/// Ring attention is hidden as far as attention takes as long, but for one part of the keys; tp as
/// far as the table says; gathered blocks (ClipParallel::shard) as far as computing takes as long,
/// but for one block. The batch goes from host to host. Throws Error{usage} for ranks that cannot
/// share it. `gpu` may be null.
SharedPass shared_pass(const PassWork& work, const ClipParallel& parallel,
                       const models::CpChoice& cp, const models::Gpu* gpu);

}  // namespace vfm::generate
