// What it costs to use a Cosmos tokenizer (models/cosmos/tokenizer.h), found by running its network
// on Device::meta (tensor/meta.h), chunk by chunk. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/config.h"
#include "models/part_cost.h"
#include "tensor/tensor.h"

namespace vfm::models {

enum class CosmosWork { encode, decode };

/// What becomes of pixels, or what pixels are made of: a latent of frames x height x width, `step`
/// latent frames at a time. Parameters are those of encoder and decoder. Decoding, of so many bands
/// of rows on ranks that are not there: what the one costs that has most.
PartCost cosmos_cost(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                     std::int64_t height, std::int64_t width, std::int64_t step, Device device,
                     DType compute, int bands = 1);

}  // namespace vfm::models
