// The order of samples of several sets, in given proportions.
//
// Which set the sample at a place is of says data/interleaving.h: proportions hold for any number
// of first samples, over all epochs. Each set is gone through in an order of its own, a keyed
// permutation for each of its own epochs, of which each begins where the one before ends, whatever
// epoch the blend is in. So all of it follows from the place, and any block is found at once; of a
// set nothing is in memory. Samples have numbers: those of the first set, then those of the next.
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/order.h"

namespace vfm::data {

/// Proportions of sets, and how long an epoch of their blend is.
struct BlendShares {
  std::vector<std::uint64_t> shares;  ///< for Interleaving
  std::uint64_t epoch = 0;            ///< samples
};

/// By weights: an epoch is as many samples as all sets have together. Throws Error{usage}.
BlendShares shares_of_weights(std::span<const double> weights,
                              std::span<const std::uint64_t> sizes);
/// By how often a set comes in an epoch of the blend: parts will do. Throws Error{usage}.
BlendShares shares_of_repeats(std::span<const double> repeats,
                              std::span<const std::uint64_t> sizes);

/// Of sets of these sizes, none of which is 0.
std::unique_ptr<EpochOrder> order_of_blend(std::vector<std::uint64_t> sizes, BlendShares shares,
                                           std::uint64_t seed);

}  // namespace vfm::data
