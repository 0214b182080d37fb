// The rank that has the largest of some bands of rows, for its cost on Device::meta. The other
// ranks need not exist: what they would send is nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "dist/group.h"
#include "models/cosmos/spatial_exchange.h"

namespace vfm::models {

class LargestBand {
 public:
  /// The band with most of `rows` latent rows, and of those with as many one that has a band on
  /// either side.
  LargestBand(std::int64_t rows, int bands);
  const SpatialExchange& exchange() const { return exchange_; }

 private:
  std::unique_ptr<dist::Group> group_;
  SpatialExchange exchange_;
};

}  // namespace vfm::models
