// What the stages of a pipe kept busy lately, and how fast cards are: what base/card_rule.h goes
// by.
//
// Means over the last seconds, of sums that only grow: the board (base/card_board.h) has them in
// its file, a simulation in memory. Pure functions. Thread-safety: any thread; an object, one at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/card_rule.h"

namespace vfm {

/// Of one stage, since it joined. An item that is under way counts up to now.
struct CardCounts {
  std::array<double, kMostCards> busy{};   ///< seconds with an item, by card
  std::array<double, kMostCards> items{};  ///< that ended
  double short_of = 0;                     ///< seconds in which an item waited for a card
  double ready = 0, handed = 0;            ///< results, as base/ordered_flow.h counts them
  /// Half of the squares of what each item took longer than the one before it, on a card of speed
  /// 1: their variance, which a change for good, one difference of many, does not add to.
  double squares = 0;
};

/// Of one stage. All zero is the begin. In a file that programs share: plain numbers alone.
struct CardAverages {
  static constexpr int kSpans = 3;
  /// Seconds after which what was counts 1/e.
  static constexpr std::array<double, kSpans> kRemembered = {1, 6, 24};

  CardCounts seen;                       ///< when it was last looked at
  std::array<CardCounts, kSpans> mean;   ///< sums in which older ones count less
  std::array<double, kSpans> seconds{};  ///< likewise, of the time itself

  /// `passed` seconds have passed since the last call.
  void add(const CardCounts& now, double passed);
  /// Sets what CardStage has of these, by that span.
  void tell(int span, std::span<const CardPlace> cards, CardStage& stage) const;
};

/// plan_cards() by what `averages` tell of `stages`, one of each. Of a stage that runs ahead its
/// work counts as far as what it makes goes through all stages behind it.
std::vector<CardSet> plan_by_averages(std::span<CardStage> stages,
                                      std::span<const CardAverages* const> averages,
                                      std::span<const CardPlace> cards, double lasted);

/// An item that ended.
struct CardItem {
  int card = 0;
  double seconds = 0;
};
/// Compares an item with the one of the same stage that ended before it: the speeds of their two
/// cards move a little to where both are the same work. Over many items that is right whatever
/// their sizes are, since either card has the larger one as often. Returns what it adds to
/// CardCounts::squares.
double compare_items(CardItem last, CardItem item, std::span<CardPlace> cards);

}  // namespace vfm
