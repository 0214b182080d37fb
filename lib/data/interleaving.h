// In which order things of several sources come, so that each source has its share at any moment.
//
// Not by chance: of any number of things from the beginning on each source has its share of them,
// less than one off for up to three sources, and less than two for any number. The sources are the
// leaves of a Huffman tree of their shares; of the m things that come to a node its lighter child
// has m times its part of the node's share, rounded (Bresenham's line). Rounding errors add up on
// the way to a leaf, times a leaf's part of each node on it, and in such a tree these parts fall as
// fast as Fibonacci's numbers grow: so their sum is below 1.7. How many of the first n things are
// of each source follows from n alone, whole numbers all the way; where all shares of n are whole
// there is no error.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::data {

class Interleaving {
 public:
  /// Of these shares, each at least 1, together at most 2^62. At least one.
  explicit Interleaving(std::span<const std::uint64_t> shares);

  /// Of the first n things how many are of each source.
  std::vector<std::uint64_t> counts(std::uint64_t n) const;

  /// Source after source, from the n-th thing on (counted from 0).
  class Walk {
   public:
    /// Keeps the reference.
    Walk(const Interleaving& of, std::uint64_t n);
    /// Of the next thing.
    std::size_t next();

   private:
    const Interleaving& of_;
    std::vector<std::uint64_t> rests_;  // of each node's division
  };

 private:
  struct Node {
    std::uint64_t share = 0;
    std::size_t light = 0, heavy = 0;  ///< children; of a leaf both its source
  };
  std::vector<std::uint64_t> through(std::uint64_t n) const;

  std::size_t sources_;
  std::vector<Node> nodes_;  ///< leaves by source, then each node after its children
};

/// Numbers as shares in whole numbers with the same proportions, each at least 1, without a common
/// divisor. `times` multiplies each: what one is a share of. Throws Error{usage}, calling them
/// `what`, unless all are above 0, with at most nine decimals and 15 digits
/// in all, and not too far apart.
std::vector<std::uint64_t> whole_shares(std::span<const double> values,
                                        std::span<const std::uint64_t> times, const char* what);

}  // namespace vfm::data
