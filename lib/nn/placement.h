// Which part of a parameter a rank holds: a box in the whole one. And how a matrix is cut into such
// parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::nn {

struct Placement {
  Shape global;  ///< of the whole parameter
  Shape offset;  ///< of the part's first element, by dim; the part's own shape is the tensor's
  bool operator==(const Placement&) const = default;
};

/// Part `rank` of `ranks` along dim `dim`, of each parameter by itself. Parts differ by one at
/// most, the first ones are the longer.
struct Cut {
  int dim = 0;
  int rank = 0, ranks = 1;
};

/// Where part `rank` of n things begins; the end of the last one is share(n, ranks, ranks).
inline std::int64_t share(std::int64_t n, int rank, int ranks) {
  const std::int64_t each = n / ranks, more = n % ranks;
  return each * rank + (rank < more ? rank : more);
}

/// The part of a parameter of shape `global`, and its shape.
struct PlacedPart {
  Placement placement;
  Shape shape;
};
PlacedPart cut_part(const Shape& global, const Cut& cut);

}  // namespace vfm::nn
