// The cost of a Cosmos tokenizer (models/cosmos/tokenizer.h), found by running its network on
// Device::meta (tensor/meta.h), chunk by chunk. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/config.h"
#include "models/part_cost.h"
#include "tensor/tensor.h"

namespace vfm::models {

enum class CosmosWork { encode, decode };

/// The cost of encoding or decoding a latent of frames x height x width, `step` latent frames at a
/// time. Parameters are counted for encoder and decoder. Decoding may be shared by ranks with
/// `bands` bands of rows, which need not exist: the cost is that of the rank with the largest band.
PartCost cosmos_cost(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                     std::int64_t height, std::int64_t width, std::int64_t step, Device device,
                     DType compute, int bands = 1);

}  // namespace vfm::models
