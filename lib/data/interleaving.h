// The order in which things of several sources come, so that each source has its share at any
// moment.
//
// The order is not random. Among any number of first things each source has its share, with an
// error below one thing for up to three sources, and below two for any number. The sources are the
// leaves of a Huffman tree of their shares. If m things come to a node, its lighter child gets m
// times the child's part of the node's share, rounded (Bresenham's line). Rounding errors add up on
// the way to a leaf, each times the leaf's part of the node where it arose. In a Huffman tree these
// parts fall as fast as Fibonacci's numbers grow, so the sum is below 1.7. How many of the first n
// things each source has follows from n alone, by integer arithmetic; if all shares of n are whole,
// the error is 0. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::data {

class Interleaving {
 public:
  /// Takes at least one share. Each is at least 1, and their sum at most 2^62.
  explicit Interleaving(std::span<const std::uint64_t> shares);

  /// How many of the first n things each source has.
  std::vector<std::uint64_t> counts(std::uint64_t n) const;

  /// Gives the sources of the things one after another, from the n-th thing on (counted from 0).
  class Walk {
   public:
    /// Keeps the reference.
    Walk(const Interleaving& of, std::uint64_t n);
    /// The source of the next thing.
    std::size_t next();

   private:
    const Interleaving& of_;
    std::vector<std::uint64_t> rests_;  // remainder of each node's division
  };

 private:
  struct Node {
    std::uint64_t share = 0;
    std::size_t light = 0, heavy = 0;  ///< children; both the source if the node is a leaf
  };
  std::vector<std::uint64_t> through(std::uint64_t n) const;

  std::size_t sources_;
  std::vector<Node> nodes_;  ///< leaves by source, then each node after its children
};

/// Whole numbers with the proportions of `values`, each value multiplied by its `times`. They are
/// at least 1 and have no common divisor. Throws Error{usage}, calling the values `what`, unless
/// all are above 0, have at most nine decimals and 15 digits in all, and are not too far apart.
std::vector<std::uint64_t> whole_shares(std::span<const double> values,
                                        std::span<const std::uint64_t> times, const char* what);

}  // namespace vfm::data
