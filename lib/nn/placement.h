// Which part of a parameter a rank holds: a box in the whole one. And how a matrix is cut into such
// parts, and the state of a part is shared by the ranks that have the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::nn {

struct Placement {
  Shape global;  ///< of the whole parameter
  Shape offset;  ///< of the part's first element, by dim; the part's own shape is the tensor's
  /// Of a stretch of a part (Parameter::state), which is the tensor, [n]: the part's shape, and the
  /// element of it, in C order, that the stretch begins with. Else empty, and 0.
  Shape part = {};
  std::int64_t begin = 0;
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

/// Elements of a part, in C order.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

/// Which of the ranks that have the same weights this one is: each keeps the state of a stretch.
struct StateShare {
  int rank = 0, ranks = 1;
};
/// Ranks of tp have the same of some weights alone, so there are more that share their state.
struct StateShares {
  StateShare whole, cut;
};

/// The part of a parameter of shape `global`, and its shape.
struct PlacedPart {
  Placement placement;
  Shape shape;
};
PlacedPart cut_part(const Shape& global, const Cut& cut);

}  // namespace vfm::nn
