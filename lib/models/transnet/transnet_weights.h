// The weights of a TransNet V2, and where they come from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/held_json.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Convolutions in space, then in time over frames that are `dilation` apart. What the batch norm
/// behind them does is in the second.
struct TransNetBranch {
  std::int64_t dilation = 1;
  Tensor space;       ///< [2 F, C, 1, 3, 3]
  Tensor time, bias;  ///< [F, 2 F, 3, 1, 1], [F]
};

struct TransNetCell {
  std::int64_t in = 0, filters = 0;  ///< channels of what goes in, and of a branch's result
  std::array<TransNetBranch, 4> branches;
};

struct TransNetLinear {
  Tensor weight, bias;  ///< [out, in], [out]
};

struct TransNetWeights {
  static constexpr std::int64_t kBandWidth = 101;  ///< frames that likeness is looked at to
  static constexpr std::int64_t kBandOut = 128;    ///< features of that

  std::array<std::array<TransNetCell, 2>, 3> stacks;
  TransNetLinear projection, feature_band, colour_band, hidden, head;
  HeldJson config;  ///< TransNet::config()
};

/// Throws Error{usage}: no such folder, no weights, tensors that are not those of the network or
/// have other shapes (told before a value is read), values that are no numbers.
TransNetWeights read_transnet(const std::string& folder);

}  // namespace vfm::models
