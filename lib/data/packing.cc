// SPDX-License-Identifier: Apache-2.0
#include "data/packing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/error.h"

namespace vfm::data {
namespace {

void check(std::span<const std::int64_t> tokens, const PackOptions& options) {
  if (options.tokens < 1) fail_usage("a pack of {} tokens: must be at least 1", options.tokens);
  if (options.window < 1) fail_usage("a window of {} samples: must be at least 1", options.window);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 1 || tokens[i] > options.tokens)
      fail_usage("sample {} has {} tokens; a pack of {} takes 1 to {}", i, tokens[i],
                 options.tokens, options.tokens);
}

/// The samples looked at: for each length that occurs a queue, oldest first, and a bit that says
/// whether anything is in it. Every operation but the search for a bit takes constant time.
class Window {
 public:
  Window(std::span<const std::int64_t> tokens, int size)
      : tokens_(tokens),
        vacant_(size),
        lengths_(distinct(tokens)),
        queues_(lengths_.size()),
        occupied_(lengths_.size() / 64 + 1),
        next_of_(tokens.size(), kNone),
        taken_(tokens.size()) {
    fill();
  }

  bool empty() const { return oldest_ == tokens_.size(); }

  /// The oldest of all is the oldest of its length.
  std::size_t take_oldest() { return take(rank_of(tokens_[oldest_])); }

  /// The longest of at most `most` tokens, of equals the oldest; false if there is none.
  bool take_longest(std::int64_t most, std::size_t& sample) {
    const auto end = std::upper_bound(lengths_.begin(), lengths_.end(), most) - lengths_.begin();
    const std::size_t rank = last_occupied(static_cast<std::size_t>(end));
    if (rank == kNone) return false;
    sample = take(rank);
    return true;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Queue {
    std::size_t front = kNone, back = kNone;
  };

  static std::vector<std::int64_t> distinct(std::span<const std::int64_t> tokens) {
    const std::unordered_set<std::int64_t> set(tokens.begin(), tokens.end());
    std::vector<std::int64_t> lengths(set.begin(), set.end());
    std::sort(lengths.begin(), lengths.end());
    return lengths;
  }

  std::size_t rank_of(std::int64_t length) const {
    return std::lower_bound(lengths_.begin(), lengths_.end(), length) - lengths_.begin();
  }

  /// The highest rank below `end` with anything in its queue.
  std::size_t last_occupied(std::size_t end) const {
    std::size_t word = end / 64;
    std::uint64_t bits = occupied_[word] & ((std::uint64_t{1} << end % 64) - 1);
    while (bits == 0 && word > 0)
      bits = occupied_[--word];
    return bits == 0 ? kNone : word * 64 + static_cast<std::size_t>(std::bit_width(bits)) - 1;
  }

  std::size_t take(std::size_t rank) {
    Queue& queue = queues_[rank];
    const std::size_t sample = queue.front;
    queue.front = next_of_[sample];
    if (queue.front == kNone) occupied_[rank / 64] &= ~(std::uint64_t{1} << rank % 64);
    taken_[sample] = true;
    ++vacant_;
    fill();
    while (oldest_ < tokens_.size() && taken_[oldest_])
      ++oldest_;
    return sample;
  }

  void fill() {
    for (; vacant_ > 0 && next_ < tokens_.size(); ++next_, --vacant_) {
      const std::size_t rank = rank_of(tokens_[next_]);
      Queue& queue = queues_[rank];
      if (queue.front == kNone)
        queue.front = next_;
      else
        next_of_[queue.back] = next_;
      queue.back = next_;
      occupied_[rank / 64] |= std::uint64_t{1} << rank % 64;
    }
  }

  std::span<const std::int64_t> tokens_;
  int vacant_;                           // samples that the window has room for
  std::size_t oldest_ = 0;               // in the window; the number of samples at the end
  std::size_t next_ = 0;                 // the first that has not been looked at
  std::vector<std::int64_t> lengths_;    // ascending; a rank is an index here
  std::vector<Queue> queues_;            // by rank
  std::vector<std::uint64_t> occupied_;  // a bit a rank
  std::vector<std::size_t> next_of_;     // the next of the same length
  std::vector<bool> taken_;
};

}  // namespace

std::vector<Pack> plan_packs(std::span<const std::int64_t> tokens, const PackOptions& options) {
  check(tokens, options);
  Window window(tokens, options.window);
  std::vector<Pack> packs;
  while (!window.empty()) {
    std::size_t sample = window.take_oldest();
    Pack& pack = packs.emplace_back(1, sample);
    std::int64_t room = options.tokens - tokens[sample];
    while (window.take_longest(room, sample)) {
      pack.push_back(sample);
      room -= tokens[sample];
    }
  }
  return packs;
}

PackStats pack_stats(std::span<const std::int64_t> tokens, std::span<const Pack> packs,
                     const PackOptions& options) {
  PackStats stats;
  if (packs.empty()) return stats;
  double used = 0, sum = 0, sum_of_squares = 0;
  for (const Pack& pack : packs) {
    double squares = 0;
    for (const std::size_t i : pack) {
      const auto n = static_cast<double>(tokens[i]);
      used += n;
      squares += n * n;
    }
    sum += squares;
    sum_of_squares += squares * squares;
  }
  const auto n = static_cast<double>(packs.size());
  const double mean = sum / n;
  stats.fill = used / (n * static_cast<double>(options.tokens));
  stats.square_spread = std::sqrt(std::max(0.0, sum_of_squares / n - mean * mean)) / mean;
  return stats;
}

}  // namespace vfm::data
