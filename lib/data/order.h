// The order in which an epoch visits its samples, and the packs it makes of them.
// Pure: the same on every rank, and known for any epoch without the ones before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/packing.h"

namespace vfm::data {

/// A uniformly random permutation of 0..samples-1 for `epoch`. `source` names the data set (any
/// number), so that the sets of a blend are shuffled independently under one seed.
std::vector<std::uint64_t> epoch_order(std::uint64_t samples, std::uint64_t seed,
                                       std::uint32_t epoch, std::uint64_t source = 0);

/// The packs of an epoch, as vfm-train takes them and vfm-pack --plan prints them: samples of these
/// lengths in epoch_order, packed. Indices into `tokens`. Every epoch is packed on its own, so a
/// pack never holds a sample twice, and to resume at (epoch, pack) is to plan one epoch.
std::vector<Pack> epoch_packs(std::span<const std::int64_t> tokens, const PackOptions& options,
                              std::uint64_t seed, std::uint32_t epoch);

}  // namespace vfm::data
