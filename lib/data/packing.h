// Sequence packing: which samples make up a pack of at most N tokens, planned from lengths alone.
//
// Both ways look at a window of samples in data order; what is taken is replaced from the sequence
// at once, and what is left stays for the next pack. The oldest sample of the window always opens
// the pack: none waits for more packs than there were samples before it. Pure functions of (lengths
// in order, capacity, window): the same on any rank.
//
// Best fit: the longest that still fits is added until none fits. So packs are full, but not of
// equal work: a sample of n tokens costs a n + b n^2 in attention over itself, hence a full pack
// a * capacity + b * sum(n^2), and ranks wait for the one whose pack has the longest videos.
//
// Balanced: each pack is asked for the same tokens, the capacity, and the same squares, so nothing
// need be known of a and b. Squares asked for are capacity * sum(n^2) / sum(n), four fifths by what
// is left of the sequence and a fifth by the window, so that a window short of long samples gets to
// hold more of them. Then, in turn, until nothing fits:
//   - the pack as it is, with one more sample or with two (the longer being the longest that fits)
//     is compared with what is asked: squares too many or too few, and for each token of room that
//     stays the squares of three average ones. The nearest of all is remembered;
//   - the oldest sample is added after which the room can still have the squares that are missing:
//     at least those of room filled with the shortest in the window, at most with the longest. If
//     there is none, the one that comes nearest to it, of equals the oldest.
// At last what was added after the nearest goes back. That most samples come by age and two by
// choice keeps packs as mixed as the data.
// Where it cannot help, as with samples whose own squares are more than a pack should have, packs
// are those of best fit: unless the spread of squares is smaller by a tenth, or if there are more
// than 1 % more packs.
//
// The method is ours. Best fit over a bounded window is known from bin packing; others level work
// by moving sequences between ranks at each step (KnapFormer, arXiv:2508.06001), which costs
// messages; here nothing moves.
//
// About 0.2 microseconds a sample for best fit, 0.5 balanced with a window of 64, or as many
// different lengths; both grow with these.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::data {

/// The number is what a run remembers (train.json); those of ways once released keep their meaning.
/// The first two pack whole epochs; the last is balanced, too, in blocks of samples (data/order.h).
enum class Packing { best_fit = 1, balanced = 2, blocks = 3 };

struct PackingOptions {
  std::int64_t tokens = 8192;  ///< capacity of a pack; above 2^30 packs are not balanced
  int window = 64;             ///< samples looked at
  Packing packing = Packing::blocks;
};

/// Indices into the sequence of samples, in the order they stand in the pack.
using Pack = std::vector<std::size_t>;

/// Packs a finite sequence. The last packs may be poorly filled; nothing is lost. Throws
/// Error{usage} if a sample is longer than the capacity (naming its position) or shorter than one
/// token, or if an option is not positive.
std::vector<Pack> plan_packs(std::span<const std::int64_t> tokens, const PackingOptions& options);

struct PackStats {
  double fill = 0;           ///< tokens used / capacity over all packs
  double square_spread = 0;  ///< coefficient of variation of sum(tokens^2) per pack
};
/// Of packs that come one by one.
class PackTally {
 public:
  explicit PackTally(std::int64_t capacity) : capacity_(capacity) {}
  /// A pack of samples of these lengths; of those of a sequence.
  void add(std::span<const std::int64_t> tokens);
  void add(const Pack& pack, std::span<const std::int64_t> tokens);
  std::size_t packs() const { return packs_; }
  PackStats stats() const;

 private:
  void add_sums(double tokens, double squares);

  std::int64_t capacity_;
  std::size_t packs_ = 0;
  double used_ = 0, sum_ = 0, sum_of_squares_ = 0;  // tokens; squares, and theirs
};

}  // namespace vfm::data
