// The settings of one forward pass that every layer reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/token_shard.h"

namespace vfm::nn {

struct Pass {
  TokenExchanges exchanges;  ///< none is set if one rank has the whole network
  /// Backward computes results of norms and activations again (Recompute::elementwise or more).
  bool recompute = false;
  /// Rows are single tokens, for inference. No bit of a product depends on how many outputs this
  /// rank has (ops/matmul/few_rows.h). Of a text any number of rows is multiplied so.
  bool newest = false;
};

}  // namespace vfm::nn
