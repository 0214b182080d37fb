// Chooses the matrices of an autoregressive decoder that get adapters, as models/dit/lora.h does
// for diffusion networks. Only matrices of layers can have adapters, not the table or the last
// matrix.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/decoder/decoder_config.h"
#include "models/dit/lora.h"

namespace vfm::models {

/// Returns the matrices of the layers, in no particular order.
std::vector<NetworkMatrix> decoder_matrices(const DecoderConfig& config);

/// See the functions of these names for diffusion networks (models/dit/lora.h).
std::vector<std::string> lora_target_names(const DecoderConfig& config, const LoraOptions& options);
std::vector<NetworkMatrix> lora_targets(const DecoderConfig& config, const LoraOptions& options);
std::vector<nn::AdapterShape> lora_shapes(const DecoderConfig& config, const LoraOptions& options);

}  // namespace vfm::models
