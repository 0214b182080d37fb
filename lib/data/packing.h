// Sequence packing: which samples make up a pack of at most N tokens, planned from lengths alone.
//
// Streaming best-fit with carry-over: a window of samples in data order; the longest that still
// fits is added until none fits; what is taken is replaced from the sequence at once, and what is
// left stays for the next pack. The oldest sample of the window always opens the pack, so none
// waits for ever. Pure function of (lengths in order, capacity, window): the same on any rank.
// About 0.2 microseconds a sample.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vfm::data {

struct PackOptions {
  std::int64_t tokens = 8192;  ///< capacity of a pack
  int window = 64;             ///< samples looked at
};

/// Indices into the sequence of samples, in the order they stand in the pack.
using Pack = std::vector<std::size_t>;

/// Packs a finite sequence. The last packs may be poorly filled; nothing is lost. Throws
/// Error{usage} if a sample is longer than the capacity (naming its position) or shorter than one
/// token, or if an option is not positive.
std::vector<Pack> plan_packs(std::span<const std::int64_t> tokens, const PackOptions& options);

struct PackStats {
  double fill = 0;           ///< tokens used / capacity over all packs
  double square_spread = 0;  ///< coefficient of variation of sum(tokens^2) per pack
};
PackStats pack_stats(std::span<const std::int64_t> tokens, std::span<const Pack> packs,
                     const PackOptions& options);

}  // namespace vfm::data
