// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/rank_line.h"

#include "base/error.h"

namespace vfm::models {

RankLine::RankLine(dist::Group& group, int first, int apart, int size)
    : group_(&group),
      first_(first),
      apart_(apart),
      size_(size),
      place_((group.rank() - first) / apart) {
  if (size < 1 || place_ < 0 || place_ >= size || rank_at(place_) != group.rank() ||
      rank_at(size - 1) >= group.size())
    fail("rank {} is not one of {} ranks from {} on, in steps of {}", group.rank(), size, first,
         apart);
}

dist::Transfer RankLine::step(bool sends, int to, const Tensor& out, bool receives, int from,
                              const Tensor& in) const {
  if (sends && receives) return group_->exchange(rank_at(to), out, rank_at(from), in);
  if (sends) return group_->send(rank_at(to), out);
  if (receives) return group_->receive(rank_at(from), in);
  return {};
}

}  // namespace vfm::models
