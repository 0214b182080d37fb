// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network.h"

#include "models/dit/dit.h"
#include "models/dit/moviegen.h"

namespace vfm::models {

std::unique_ptr<DiffusionNetwork> make_network(const NetworkConfig& config, std::uint64_t seed,
                                               DType compute, Device device, bool trainable,
                                               const NetworkLayout& layout) {
  if (config.type == NetworkType::moviegen)
    return make_moviegen(config, seed, compute, device, trainable, layout);
  return std::make_unique<Dit>(config, seed, compute, device, trainable, layout);
}

}  // namespace vfm::models
