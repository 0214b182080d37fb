// What it costs to generate with a network, found by running it on Device::meta (tensor/meta.h).
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dist/traffic.h"
#include "models/decoder/decoder.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"
#include "models/part_cost.h"

namespace vfm::models {

/// One forward() of a pack of these samples, without recording. With sets of `adapters` beside the
/// weights, which are among the parameters then. With a layout of a counted world
/// (dist/world.h) the costs are those of its rank, and that world's `traffic` afterwards is that of
/// one forward().
PartCost forward_cost(const NetworkConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const std::vector<NetworkSample>& samples, DType compute, Fp8Parts fp8,
                      Device device, const nn::NetworkLayout& layout = {},
                      dist::Traffic* traffic = nullptr);

/// Writing all codes of a sample one after the other (CodeWriter), with adapters as above.
PartCost writing_cost(const DecoderConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const CodeSample& sample, DType compute, Device device);

}  // namespace vfm::models
