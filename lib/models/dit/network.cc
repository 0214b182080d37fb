// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network.h"

#include "models/dit/architecture.h"

namespace vfm::models {

std::unique_ptr<DiffusionNetwork> make_network(const NetworkConfig& config, std::uint64_t seed,
                                               DType compute, Device device, bool trainable,
                                               const nn::NetworkLayout& layout) {
  return config.architecture->make(config, seed, compute, device, trainable, layout);
}

}  // namespace vfm::models
