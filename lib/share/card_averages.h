// Recent averages of how busy a pipe's stages were and how fast cards are, for share/card_rule.h.
//
// Means over the last seconds, of sums that only grow. The board (share/card_board.h) keeps them in
// its file, a simulation in memory. Pure functions. Thread-safety: any thread; an object, one at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "share/card_rule.h"

namespace vfm::share {

/// The counts of one stage since it joined. An item under way counts up to now.
struct CardCounts {
  std::array<double, kMostCards> busy{};   ///< seconds with an item, by card
  std::array<double, kMostCards> items{};  ///< that ended
  double short_of = 0;                     ///< seconds in which an item waited for a card
  double ready = 0, handed = 0;            ///< results, as share/ordered_flow.h counts them
  /// Half of the summed squares of the difference in time between each item and the one before, on
  /// a card of speed 1: their variance. A lasting change, one difference of many, hardly adds to
  /// it.
  double squares = 0;
};

/// The averages of one stage; all zero at the start. They lie in a file that programs share, so
/// only plain numbers are allowed.
struct CardAverages {
  static constexpr int kSpans = 3;
  /// Seconds after which an old value counts 1/e.
  static constexpr std::array<double, kSpans> kRemembered = {1, 6, 24};

  CardCounts seen;                       ///< when it was last looked at
  std::array<CardCounts, kSpans> mean;   ///< sums in which older ones count less
  std::array<double, kSpans> seconds{};  ///< likewise, of the time itself

  /// `passed` seconds have passed since the last call.
  void add(const CardCounts& now, double passed);
  /// Sets the fields of CardStage that follow from these, by that span.
  void tell(int span, std::span<const CardPlace> cards, CardStage& stage) const;
};

/// plan_cards() by the `averages`, one of each of `stages`. The work of a stage that runs ahead
/// counts by the share of its results that passes through all stages behind it.
std::vector<CardSet> plan_by_averages(std::span<CardStage> stages,
                                      std::span<const CardAverages* const> averages,
                                      std::span<const CardPlace> cards, double lasted);

/// An item that ended.
struct CardItem {
  int card = 0;
  double seconds = 0;
};
/// Compares an item with the one of the same stage that ended before it: moves the speeds of their
/// two cards a little towards equal work. Over many items that is right whatever their sizes, since
/// either card has the larger one as often. Returns the addition to CardCounts::squares.
double compare_items(CardItem last, CardItem item, std::span<CardPlace> cards);

}  // namespace vfm::share
