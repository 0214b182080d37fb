// The order of samples of several sets, in given proportions.
//
// data/interleaving.h says which set the sample at each place comes from. The proportions hold for
// any number of first samples, over all epochs of the blend. Each set has its own epochs, which
// follow one another without regard to the blend's epochs. In each of them a keyed permutation
// orders the samples of the set. So the order is a function of the place: any block is found
// without the ones before it, and no set is held in memory. Samples are numbered through: first
// those of set 0, then those of set 1, and so on. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/order.h"

namespace vfm::data {

/// The proportions of the sets, and the length of an epoch of their blend.
struct BlendShares {
  std::vector<std::uint64_t> shares;  ///< for Interleaving
  std::uint64_t epoch = 0;            ///< length of an epoch, samples
};

/// Shares by weights. An epoch has as many samples as all sets have together. Throws Error{usage}.
BlendShares shares_of_weights(std::span<const double> weights,
                              std::span<const std::uint64_t> sizes);
/// Shares by how often an epoch of the blend visits each set; fractions are allowed. Throws
/// Error{usage}.
BlendShares shares_of_repeats(std::span<const double> repeats,
                              std::span<const std::uint64_t> sizes);

/// `sizes` are the numbers of samples of the sets, none of them 0.
std::unique_ptr<EpochOrder> order_of_blend(std::vector<std::uint64_t> sizes, BlendShares shares,
                                           std::uint64_t seed);

}  // namespace vfm::data
