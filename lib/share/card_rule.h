// Two rules for programs that share cards (GPUs; share/card_board.h). One rule decides on which
// cards each stage of a pipe has its model loaded. The other rule decides which item gets a free
// card.
//
// The rule for items: of the stages whose model is on the free card and whose items wait, the last
// stage of the pipe gets the card.
//
// The rule for models: the work of a stage is the time that its cards are busy for one unit that
// flows through the pipe. The work of all stages determines the rate of each placement of models on
// cards. Models move to the placement with the highest rate, if the move gains more than its loads
// cost. The memory of each card limits the placements.
//
// If the reader of a stage is slow, the stage's results pile up, and the stage seems to need more
// cards than it does. Therefore its work is multiplied by the share of its results that reaches the
// end of the pipe: the product of CardStage::passes over the stage and all later stages.
//
// The rate of a placement: a stage s needs w(s) cards for one unit a second. For a set Q of stages,
// divide the number of cards with a model of Q by the sum of w(s) over Q. The greatest rate is the
// least of these quotients over all Q, by Gale's theorem on supplies and demands (Pacific J. Math.
// 7, 1957). With more than 6 stages, only some sets are tried.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vfm::share {

constexpr int kMostCards = 64;
/// A set of cards: bit i is card i.
using CardSet = std::uint64_t;
constexpr CardSet card_bit(int card) {
  return CardSet{1} << card;
}

/// The input of plan_cards() for one stage.
struct CardStage {
  int place = 0;            ///< Position in the pipe. Later stages have greater numbers.
  int next = -1;            ///< Index of the stage that reads the output, or -1.
  double passes = 1;        ///< Share of recent ready results that were handed on.
  std::int64_t memory = 0;  ///< Bytes of the stage's model.
  int waiting = 0;          ///< Items that wait for a card now.
  double work = 0;          ///< Mean number of cards that the stage kept busy lately.
  double error = 0;         ///< Uncertainty as a share of `work`, 0 to 1.
  double short_of = 0;      ///< Share of the time in which an item waited for a card, 0 to 1.
  bool known = false;       ///< Whether the stage had a card lately.
  double idle = 0;          ///< Seconds since the latest item, or since the stage joined.
  double load_seconds = 0;  ///< Seconds that a load of the model takes.
  CardSet may = 0;          ///< Cards that the stage can use.
  CardSet loaded = 0;       ///< Cards on which the model is loaded or loading.
  CardSet fixed = 0;        ///< Cards of `loaded` that must keep the model now.
};

/// The input of both rules for one card.
struct CardPlace {
  std::int64_t free = 0;  ///< Bytes for models, including loaded models.
  int sessions = 0;       ///< Number of free sessions. An item gets the card with the most.
};

/// Returns the cards on which the model of each stage should be loaded: the present cards if no
/// model should move. `spans` has the stages with averages over several time spans, shortest first.
/// The shortest span with enough data decides, unless a shorter span contradicts it. `lasted` is
/// the number of seconds since the latest load of a model.
std::vector<CardSet> plan_cards(std::span<const std::vector<CardStage>> spans,
                                std::span<const CardPlace> cards, double lasted);

/// The input of card_for_item() for one stage.
struct CardClaim {
  int place = 0;  ///< Place in the pipe, as CardStage::place.
  int waiting = 0;
  CardSet ready = 0;  ///< Cards on which the model is loaded and stays loaded.
};

/// Returns the card of `free` (cards without an item) that an item of stage `own` gets, or -1 if
/// the item gets no card. Sets `left` to whether another stage should get a free card.
int card_for_item(std::span<const CardClaim> claims, std::size_t own, CardSet free,
                  std::span<const CardPlace> cards, bool* left = nullptr);

}  // namespace vfm::share
