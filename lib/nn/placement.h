// Which part of a parameter a rank holds: a box in the whole parameter. Also how a matrix is cut
// into such parts, and how ranks with the same part share its state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::nn {

struct Placement {
  Shape global;  ///< shape of the whole parameter
  Shape offset;  ///< the part's first element, by dim; the part's shape is the tensor's
  /// If the tensor is a stretch [n] of a part (Parameter::state): the shape of the part, and the
  /// number in C order of the stretch's first element. Else empty, and 0.
  Shape part = {};
  std::int64_t begin = 0;
  bool operator==(const Placement&) const = default;
};

/// Part `rank` of `ranks` along dim `dim`, of each parameter by itself. Part sizes differ by at
/// most one; the first parts are the longer ones.
struct Cut {
  int dim = 0;
  int rank = 0, ranks = 1;
};

/// The first element of part `rank` of n elements. The end of the last part is share(n, ranks,
/// ranks).
inline std::int64_t share(std::int64_t n, int rank, int ranks) {
  const std::int64_t each = n / ranks, more = n % ranks;
  return each * rank + (rank < more ? rank : more);
}

/// Returns the number of elements of each part.
std::vector<std::int64_t> shares(std::int64_t n, int ranks);

/// A range of the elements of a part, in C order.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

/// This rank's number among the ranks that have the same weights, each of which keeps the state of
/// a stretch.
struct StateShare {
  int rank = 0, ranks = 1;
};
/// `cut` is for weights cut along tp. Weights that are not cut are the same on all ranks of tp, so
/// more ranks share their state (`whole`).
struct StateShares {
  StateShare whole, cut;
};

/// A part of a parameter: its placement and its shape.
struct PlacedPart {
  Placement placement;
  Shape shape;
};
PlacedPart cut_part(const Shape& global, const Cut& cut);

}  // namespace vfm::nn
