// Computes the cost of generating with a network by running it on Device::meta (tensor/meta.h).
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

/// Returns the cost of one forward() of a pack of these samples, without recording. `adapters` are
/// sets of adapters beside the weights; they count as parameters. With a layout of a counted world
/// (dist/world.h) the cost is that of the world's rank. `traffic`, that of this world, is then the
/// traffic of one forward().
PartCost forward_cost(const NetworkConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const std::vector<NetworkSample>& samples, DType compute, Fp8Parts fp8,
                      Device device, const nn::NetworkLayout& layout = {},
                      dist::Traffic* traffic = nullptr);

/// Returns the cost of writing all codes of a sample one after the other (CodeWriter). Arguments
/// are as above; `traffic` is that of the last code. In a pipeline the rank keeps the keys of as
/// many samples as there are stages, and works on one.
PartCost writing_cost(const DecoderConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const CodeSample& sample, DType compute, Device device,
                      const nn::NetworkLayout& layout = {}, dist::Traffic* traffic = nullptr);

}  // namespace vfm::models
