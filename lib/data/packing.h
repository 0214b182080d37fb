// Sequence packing: which samples make up a pack of at most N tokens, planned from lengths alone.
//
// Both methods look at a window of samples in data order. Each sample that goes into a pack is
// replaced from the sequence at once; the others stay for the next pack. The oldest sample of the
// window always opens the pack: none waits for more packs than there were samples before it. Pure
// functions of (lengths in order, capacity, window): the same on any rank.
//
// Best fit: adds the longest sample that still fits until none fits. Packs are then full, but their
// work is unequal. A sample of n tokens costs a n + b n^2 in attention over itself, hence a full
// pack a * capacity + b * sum(n^2), and ranks wait for the one whose pack has the longest videos.
//
// Balanced: each pack aims at the same tokens, the capacity, and at the same sum of squares, so a
// and b need not be known. The target of squares is capacity * sum(n^2) / sum(n), four fifths by
// the samples that are not packed yet and one fifth by the window. So a window short of long
// samples collects them. Two steps alternate until nothing fits:
//   - Compare the pack as it is, and with one more sample or two (the longer being the longest that
//     fits), with the targets. The distance is the absolute error of the squares, plus the squares
//     of three average tokens for each token of room that stays. Remember the nearest.
//   - Add the oldest sample after which the room can still have the missing squares: at least those
//     of a room filled with the shortest samples of the window, at most with the longest. If there
//     is none, add the sample that comes nearest; of equals, the oldest.
// At the end the samples that were added after the nearest pack go back. Most samples are chosen by
// age and at most two by length, which keeps packs as mixed as the data. Packs of best fit are used
// instead if the spread of squares is not smaller by a tenth, or if there are more than 1 % more
// packs. The spread stays if single samples have more squares than the target.
//
// Best fit over a bounded window is known from bin packing; the balanced method is our own. Others
// level work by moving sequences between ranks at each step (KnapFormer, arXiv:2508.06001), which
// costs messages.
//
// With a window of 64, or with 64 different lengths, best fit takes about 0.2 microseconds a
// sample, and balanced packing 0.5. Both times grow with these numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::data {

/// A run remembers the number in its train.json, so released numbers keep their meaning. The first
/// two pack whole epochs; the third is balanced, too, in blocks of samples (data/order.h).
enum class Packing { best_fit = 1, balanced = 2, blocks = 3 };

struct PackingOptions {
  std::int64_t tokens = 8192;  ///< capacity of a pack; packs above 2^30 are not balanced
  int window = 64;             ///< samples in the window
  Packing packing = Packing::blocks;
};

/// Indices into the sequence of samples, in their order in the pack.
using Pack = std::vector<std::size_t>;

/// Packs a finite sequence. The last packs may be poorly filled; nothing is lost. Throws
/// Error{usage} if a sample is longer than the capacity (naming its position) or shorter than one
/// token, or if an option is not positive.
std::vector<Pack> plan_packs(std::span<const std::int64_t> tokens, const PackingOptions& options);

struct PackStats {
  double fill = 0;           ///< tokens used / capacity over all packs
  double square_spread = 0;  ///< coefficient of variation of sum(tokens^2) per pack
};
/// Statistics of packs that come one by one.
class PackTally {
 public:
  explicit PackTally(std::int64_t capacity) : capacity_(capacity) {}
  /// Adds a pack: by the lengths of its samples, or by its indices into the lengths of a sequence.
  void add(std::span<const std::int64_t> tokens);
  void add(const Pack& pack, std::span<const std::int64_t> tokens);
  std::size_t packs() const { return packs_; }
  PackStats stats() const;

 private:
  void add_sums(double tokens, double squares);

  std::int64_t capacity_;
  std::size_t packs_ = 0;
  double used_ = 0, sum_ = 0, sum_of_squares_ = 0;  // tokens; sums of squares, and of their squares
};

}  // namespace vfm::data
