// Which matrices of an autoregressive decoder adapters go to: as models/dit/lora.h says of
// diffusion networks. There are those of its layers; the table and the last matrix take none.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/decoder/decoder_config.h"
#include "models/dit/lora.h"

namespace vfm::models {

/// Those of the layers, in no particular order.
std::vector<NetworkMatrix> decoder_matrices(const DecoderConfig& config);

/// As lora_target_names(), lora_targets() and lora_shapes() of a network.
std::vector<std::string> lora_target_names(const DecoderConfig& config, const LoraOptions& options);
std::vector<NetworkMatrix> lora_targets(const DecoderConfig& config, const LoraOptions& options);
std::vector<nn::AdapterShape> lora_shapes(const DecoderConfig& config, const LoraOptions& options);

}  // namespace vfm::models
