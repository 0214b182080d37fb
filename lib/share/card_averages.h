// The input of share/card_rule.h: how busy a pipe's stages were lately.
//
// The averages are computed from counters that only grow. The board (share/card_board.h) keeps them
// in its file. Pure functions. Thread-safety: any thread; an object, one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "share/card_rule.h"

namespace vfm::share {

/// The counts of one stage since it joined. An item under way counts with its time so far.
struct CardCounts {
  std::array<double, kMostCards> busy{};   ///< seconds with an item, by card
  std::array<double, kMostCards> items{};  ///< items that ended, by card
  double short_of = 0;                     ///< seconds in which an item waited for a card
  double ready = 0, handed = 0;            ///< results, as share/ordered_flow.h counts them
  /// Half of the sum of squared differences in time between each item and the item before. It
  /// estimates the items' variance, and hardly grows when their times change for good.
  double squares = 0;
  double last = 0;  ///< seconds of the last item that ended; 0: none ended

  /// Counts the time of an item that ended in `squares`.
  void count_length(double seconds);
};

/// The averages of one stage; all zero at the start. They lie in a file that programs share, so
/// only plain numbers are allowed.
struct CardAverages {
  static constexpr int kSpans = 3;
  /// Seconds after which an old value counts 1/e.
  static constexpr std::array<double, kSpans> kRemembered = {1, 6, 24};

  CardCounts seen;                       ///< the counts at the last add()
  std::array<CardCounts, kSpans> mean;   ///< sums in which older counts weigh less
  std::array<double, kSpans> seconds{};  ///< the time in such a sum

  /// Takes the counts of `now`, `passed` seconds after the last call.
  void add(const CardCounts& now, double passed);
  /// Sets the fields of `stage` that follow from the averages over the span of this index.
  void tell(int span, CardStage& stage) const;
};

/// plan_cards() with the `averages`, one for each of `stages`. If results of a stage pile up, only
/// the share that passes through all later stages counts in its work.
std::vector<CardSet> plan_by_averages(std::span<CardStage> stages,
                                      std::span<const CardAverages* const> averages,
                                      std::span<const CardPlace> cards, double lasted);

}  // namespace vfm::share
