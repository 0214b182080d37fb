// SPDX-License-Identifier: Apache-2.0
#include "data/packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/counted.h"
#include "base/error.h"

namespace vfm::data {
namespace {

void check(std::span<const std::int64_t> tokens, const PackingOptions& options) {
  if (options.tokens < 1) fail_usage("a pack of {} tokens: must be at least 1", options.tokens);
  if (options.window < 1) fail_usage("a window of {} samples: must be at least 1", options.window);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 1 || tokens[i] > options.tokens)
      fail_usage("sample {} has {}; a pack takes 1 to {}", i, counted(tokens[i], "token"),
                 options.tokens);
}

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// Above it squares of a pack, and the sums of a few of these, could overflow.
constexpr std::int64_t kMostBalanced = std::int64_t{1} << 30;

/// Of some samples. Doubles, which hold the squares of millions of samples; sums are made in one
/// order, so they are the same everywhere.
struct TokenSums {
  double tokens = 0, squares = 0;

  void add(std::int64_t length, double sign = 1) {
    const auto n = static_cast<double>(length);
    tokens += sign * n;
    squares += sign * (n * n);
  }
  /// What a pack of `capacity` has of squares, if it is like these.
  std::int64_t squares_of(std::int64_t capacity) const {
    const auto full = static_cast<double>(capacity);
    return std::llround(full * std::clamp(squares / tokens, 1.0, full));
  }
};

/// The samples looked at, by length: few lengths, or few samples, so a sorted vector does.
class Window {
 public:
  struct Length {
    std::int64_t tokens;
    std::size_t front, back;  // samples, oldest first
  };

  Window(std::span<const std::int64_t> tokens, int size)
      : tokens_(tokens), vacant_(size), next_of_(tokens.size(), kNone), taken_(tokens.size()) {
    for (const std::int64_t length : tokens)
      left_.add(length);
    fill();
  }

  bool empty() const { return oldest_ == tokens_.size(); }
  /// Those that occur, ascending.
  const std::vector<Length>& lengths() const { return lengths_; }
  bool has_two(std::size_t rank) const { return lengths_[rank].front != lengths_[rank].back; }
  /// Of the first length of at least, and after the last of at most, so many tokens.
  std::size_t rank_of(std::int64_t length) const {
    return std::ranges::lower_bound(lengths_, length, {}, &Length::tokens) - lengths_.begin();
  }
  std::size_t end_of(std::int64_t most) const {
    return std::ranges::upper_bound(lengths_, most, {}, &Length::tokens) - lengths_.begin();
  }
  /// The oldest of all is the oldest of its length.
  std::size_t rank_of_oldest() const { return rank_of(tokens_[oldest_]); }

  /// The oldest of the length of that rank. What stands after it in the sequence comes in.
  std::size_t take(std::size_t rank) {
    Length& length = lengths_[rank];
    const std::size_t sample = length.front;
    left_.add(length.tokens, -1);
    inside_.add(length.tokens, -1);
    if (length.front == length.back)
      lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(rank));
    else
      length.front = next_of_[sample];
    taken_[sample] = true;
    ++vacant_;
    fill();
    while (oldest_ < tokens_.size() && taken_[oldest_])
      ++oldest_;
    return sample;
  }

  /// The last that was taken, of those that were not put back. What came in for it stays.
  void put_back(std::size_t sample) {
    Length& length = of_length(tokens_[sample], sample);
    next_of_[sample] = length.front == sample ? kNone : length.front;
    length.front = sample;
    left_.add(length.tokens);
    inside_.add(length.tokens);
    taken_[sample] = false;
    --vacant_;
    oldest_ = std::min(oldest_, sample);
  }

  /// Squares that a pack of `capacity` should have.
  std::int64_t asked(std::int64_t capacity) const {
    return (4 * left_.squares_of(capacity) + inside_.squares_of(capacity)) / 5;
  }

 private:
  /// The entry for that length, made for `sample` if there is none.
  Length& of_length(std::int64_t length, std::size_t sample) {
    const auto place = std::ranges::lower_bound(lengths_, length, {}, &Length::tokens);
    if (place != lengths_.end() && place->tokens == length) return *place;
    return *lengths_.insert(place, {length, sample, sample});
  }

  void fill() {
    for (; vacant_ > 0 && next_ < tokens_.size(); ++next_, --vacant_) {
      Length& length = of_length(tokens_[next_], next_);
      if (length.back != next_) next_of_[length.back] = next_;
      length.back = next_;
      inside_.add(length.tokens);
    }
  }

  std::span<const std::int64_t> tokens_;
  int vacant_;              // samples that the window has room for; negative after put_back()
  std::size_t oldest_ = 0;  // in the window; the number of samples at the end
  std::size_t next_ = 0;    // the first that has not been looked at
  std::vector<Length> lengths_;
  std::vector<std::size_t> next_of_;  // the next of the same length
  std::vector<bool> taken_;
  TokenSums left_, inside_;  // of all that is not taken; of that what the window holds
};

/// The balanced filling of one pack (packing.h).
class Filling {
 public:
  /// Into `pack`, which is empty.
  Filling(Window& window, std::int64_t capacity, Pack& pack)
      : window_(window),
        pack_(pack),
        room_(capacity),
        squares_(window.asked(capacity)),
        price_(std::max<std::int64_t>(1, 3 * squares_ / capacity)) {}

  void fill() {
    for (std::size_t rank = window_.rank_of_oldest(); rank != kNone; rank = next_rank()) {
      const std::int64_t length = window_.lengths()[rank].tokens;
      pack_.push_back(window_.take(rank));
      room_ -= length;
      squares_ -= length * length;
      try_closings();
    }
    for (; pack_.size() > nearest_.kept; pack_.pop_back())
      window_.put_back(pack_.back());
    for (const std::int64_t length : {nearest_.shorter, nearest_.longer})
      if (length > 0) pack_.push_back(window_.take(window_.rank_of(length)));
  }

 private:
  /// Of the pack's samples the first `kept`, and one or two of these lengths, 0 being none.
  struct Closing {
    std::int64_t miss = std::numeric_limits<std::int64_t>::max();
    std::size_t kept = 0;
    std::int64_t shorter = 0, longer = 0;
  };

  void try_closing(std::int64_t shorter, std::int64_t longer) {
    const std::int64_t squares = squares_ - shorter * shorter - longer * longer;
    const std::int64_t miss = std::abs(squares) + price_ * (room_ - shorter - longer);
    if (miss < nearest_.miss) nearest_ = {miss, pack_.size(), shorter, longer};
  }

  void try_closings() {
    const std::vector<Window::Length>& lengths = window_.lengths();
    try_closing(0, 0);
    std::size_t end = window_.end_of(room_);  // of those that fit beside the shorter
    const std::size_t all = end;
    for (std::size_t rank = 0; rank < all; ++rank) {
      const std::int64_t shorter = lengths[rank].tokens;
      try_closing(shorter, 0);
      while (end > 0 && lengths[end - 1].tokens > room_ - shorter)
        --end;
      if (end > rank + 1 || (end == rank + 1 && window_.has_two(rank)))
        try_closing(shorter, lengths[end - 1].tokens);
    }
  }

  /// Of what to add; kNone if nothing fits.
  std::size_t next_rank() const {
    const std::vector<Window::Length>& lengths = window_.lengths();
    std::size_t chosen = kNone;
    std::int64_t least = 0;
    for (std::size_t rank = 0; rank < lengths.size() && lengths[rank].tokens <= room_; ++rank) {
      const std::int64_t length = lengths[rank].tokens, room = room_ - length;
      const std::int64_t squares = squares_ - length * length;
      const std::int64_t longest = std::min(room, lengths.back().tokens);
      const std::int64_t beyond =
          std::max({std::int64_t{0}, lengths[0].tokens * room - squares, squares - longest * room});
      if (chosen == kNone || beyond < least ||
          (beyond == least && lengths[rank].front < lengths[chosen].front)) {
        chosen = rank;
        least = beyond;
      }
    }
    return chosen;
  }

  Window& window_;
  Pack& pack_;
  std::int64_t room_, squares_;  // that are still asked for
  std::int64_t price_;           // squares for a token of room that stays
  Closing nearest_;
};

/// Calls `sink` with each pack, which is gone afterwards.
template <class Sink>
void fill_best(std::span<const std::int64_t> tokens, const PackingOptions& options, Sink&& sink) {
  Window window(tokens, options.window);
  for (Pack pack; !window.empty(); sink(std::as_const(pack)), pack.clear()) {
    pack.push_back(window.take(window.rank_of_oldest()));
    std::int64_t room = options.tokens - tokens[pack[0]];
    while (const std::size_t end = window.end_of(room)) {
      pack.push_back(window.take(end - 1));
      room -= tokens[pack.back()];
    }
  }
}

template <class Sink>
void fill_balanced(std::span<const std::int64_t> tokens, const PackingOptions& options,
                   Sink&& sink) {
  Window window(tokens, options.window);
  for (Pack pack; !window.empty(); sink(std::as_const(pack)), pack.clear())
    Filling(window, options.tokens, pack).fill();
}

/// Whether these are so even, and not so many, that they are taken instead of the fullest.
bool worth(const PackTally& balanced, const PackTally& fullest) {
  return 100 * balanced.packs() <= 101 * fullest.packs() &&
         balanced.stats().square_spread <= 0.9 * fullest.stats().square_spread;
}

}  // namespace

std::vector<Pack> plan_packs(std::span<const std::int64_t> tokens, const PackingOptions& options) {
  check(tokens, options);
  std::vector<Pack> packs;
  if (options.packing != Packing::best_fit && options.tokens <= kMostBalanced) {
    PackTally fullest(options.tokens), balanced(options.tokens);
    fill_best(tokens, options, [&](const Pack& pack) { fullest.add(pack, tokens); });
    fill_balanced(tokens, options, [&](const Pack& pack) {
      balanced.add(pack, tokens);
      packs.push_back(pack);
    });
    if (worth(balanced, fullest)) return packs;
    packs.clear();
  }
  fill_best(tokens, options, [&](const Pack& pack) { packs.push_back(pack); });
  return packs;
}

void PackTally::add(std::span<const std::int64_t> tokens) {
  TokenSums sums;
  for (const std::int64_t length : tokens)
    sums.add(length);
  add_sums(sums.tokens, sums.squares);
}

void PackTally::add(const Pack& pack, std::span<const std::int64_t> tokens) {
  TokenSums sums;
  for (const std::size_t i : pack)
    sums.add(tokens[i]);
  add_sums(sums.tokens, sums.squares);
}

void PackTally::add_sums(double tokens, double squares) {
  used_ += tokens;
  sum_ += squares;
  sum_of_squares_ += squares * squares;
  ++packs_;
}

PackStats PackTally::stats() const {
  if (packs_ == 0) return {};
  const auto n = static_cast<double>(packs_);
  const double mean = sum_ / n;
  return {used_ / (n * static_cast<double>(capacity_)),
          std::sqrt(std::max(0.0, sum_of_squares_ / n - mean * mean)) / mean};
}

}  // namespace vfm::data
