// SPDX-License-Identifier: Apache-2.0
#include "share/slot_rule.h"

#include <cstddef>
#include <utility>

namespace vfm::share {

int next_claim(std::span<const SlotClaim> claims) {
  int best = -1;
  const auto rank = [](const SlotClaim& claim) { return std::pair(claim.items > 0, claim.place); };
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const SlotClaim& claim = claims[i];
    if (claim.held >= claim.most || (claim.items <= 0 && claim.help <= 0)) continue;
    if (best < 0 || rank(claim) > rank(claims[static_cast<std::size_t>(best)]))
      best = static_cast<int>(i);
  }
  return best;
}

}  // namespace vfm::share
