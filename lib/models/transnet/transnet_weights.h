// The weights of TransNet V2, and how they are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/held_json.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// A convolution in space, then one in time over frames that are `dilation` apart. The batch norm
/// that follows is merged into the convolution in time.
struct TransNetBranch {
  std::int64_t dilation = 1;
  Tensor space;       ///< [2 F, C, 1, 3, 3]
  Tensor time, bias;  ///< [F, 2 F, 3, 1, 1], [F]
};

struct TransNetCell {
  std::int64_t in = 0, filters = 0;  ///< channels of the input, and of the result of one branch
  std::array<TransNetBranch, 4> branches;
};

struct TransNetLinear {
  Tensor weight, bias;  ///< [out, in], [out]
};

struct TransNetWeights {
  /// Number of frames to which each frame is compared.
  static constexpr std::int64_t kBandWidth = 101;
  static constexpr std::int64_t kBandOut = 128;  ///< features made of the similarities

  std::array<std::array<TransNetCell, 2>, 3> stacks;
  TransNetLinear projection, feature_band, colour_band, hidden, head;
  HeldJson config;  ///< TransNet::config()
};

/// Throws Error{usage} if there is no such folder or no weights, if tensors are missing, unknown or
/// of other shapes (found before any value is read), or if a value is not finite.
TransNetWeights read_transnet(const std::string& folder);

}  // namespace vfm::models
