// What it costs to use a part of a model, counted from its configuration.
//
// A multiply-add is two operations. Counted are convolutions, products with matrices and attention;
// not norms, activations and wavelets, which take the memory's time and not that of arithmetic.
// Memory is that of the tensors that are alive at once, where they are most; what libraries need
// for themselves is not in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::models {

struct PartCost {
  std::int64_t parameters = 0;
  double flops = 0;
  double activation_bytes = 0;  ///< of tensors, without the weights
  double host_bytes = 0;        ///< of the host besides
};

}  // namespace vfm::models
