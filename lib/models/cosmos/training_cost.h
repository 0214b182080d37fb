// What a Cosmos tokenizer's network costs, without building it: parameters, floating point
// operations, and what its training keeps of a clip.
// Thread-safety: pure function, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/config.h"
#include "tensor/tensor.h"

namespace vfm::models {

struct CosmosTrainingCost {
  std::int64_t parameters = 0;
  /// Of convolutions and attention, a multiplication with its addition as two.
  double encode_flops = 0, decode_flops = 0;
  /// What the tape keeps from forward to backward, and the largest that backward needs besides.
  double activation_bytes = 0;
};

/// Of a video of `frames` x `height` x `width` pixels. `recompute`: as
/// CosmosAutoencoder::set_recompute.
CosmosTrainingCost cosmos_training_cost(const CosmosConfig& config, int frames, int height,
                                        int width, DType compute, bool recompute);

}  // namespace vfm::models
