// SPDX-License-Identifier: Apache-2.0
#include "nn/placement.h"

#include "base/error.h"

namespace vfm::nn {

PlacedPart cut_part(const Shape& global, const Cut& cut) {
  PlacedPart part{{global, Shape(global.size(), 0)}, global};
  if (cut.ranks == 1) return part;
  if (cut.rank < 0 || cut.rank >= cut.ranks || cut.dim < 0 ||
      cut.dim >= static_cast<int>(global.size()))
    fail("part {} of {} along dim {} of {}", cut.rank, cut.ranks, cut.dim, to_string(global));
  const auto dim = static_cast<std::size_t>(cut.dim);
  const std::int64_t begin = share(global[dim], cut.rank, cut.ranks);
  part.placement.offset[dim] = begin;
  part.shape[dim] = share(global[dim], cut.rank + 1, cut.ranks) - begin;
  return part;
}

std::vector<std::int64_t> shares(std::int64_t n, int ranks) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank)
    counts.push_back(share(n, rank + 1, ranks) - share(n, rank, ranks));
  return counts;
}

}  // namespace vfm::nn
