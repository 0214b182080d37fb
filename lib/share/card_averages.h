// Computes the input of share/card_rule.h: how busy the stages of a pipe were lately.
//
// The averages are computed from counters that only grow. The board (share/card_board.h) keeps the
// averages in its file. Pure functions. Thread-safety: any thread, but only one at a time for the
// same object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "share/card_rule.h"

namespace vfm::share {

/// The counts of one stage since it joined. The counts include the time so far of an item under
/// way.
struct CardCounts {
  std::array<double, kMostCards> busy{};   ///< seconds with an item, by card
  std::array<double, kMostCards> items{};  ///< items that ended, by card
  double short_of = 0;                     ///< seconds in which an item waited for a card
  double ready = 0, handed = 0;            ///< results, as share/ordered_flow.h counts them
  /// Half of the sum of squared differences between the times of successive items. The sum
  /// estimates the variance of the times, and hardly grows when the times change for good.
  double squares = 0;
  double last = 0;  ///< seconds of the last item that ended; 0: none ended

  /// Adds the time of an ended item to `squares`.
  void count_length(double seconds);
};

/// The averages of one stage; all zero at the start. The averages lie in a file that programs
/// share, so only plain numbers are allowed.
struct CardAverages {
  static constexpr int kSpans = 3;
  /// Seconds after which the weight of an old value has fallen to 1/e.
  static constexpr std::array<double, kSpans> kRemembered = {1, 6, 24};

  CardCounts seen;                       ///< the counts at the last add()
  std::array<CardCounts, kSpans> mean;   ///< sums in which older counts weigh less
  std::array<double, kSpans> seconds{};  ///< the time that each sum covers

  /// Adds the counts `now`, `passed` seconds after the last call.
  void add(const CardCounts& now, double passed);
  /// Sets the fields of `stage` that follow from the averages over span number `span`.
  void tell(int span, CardStage& stage) const;
};

/// Calls plan_cards() with the `averages`, one for each of `stages`. If results of a stage pile up,
/// multiplies the stage's work by the share that passes through all later stages.
std::vector<CardSet> plan_by_averages(std::span<CardStage> stages,
                                      std::span<const CardAverages* const> averages,
                                      std::span<const CardPlace> cards, double lasted);

}  // namespace vfm::share
