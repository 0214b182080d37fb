// The rules for programs that share cards (GPUs; share/card_board.h). One rule decides on which
// cards each stage of a pipe has its model loaded. The other rule decides which card an item gets.
//
// The rule for items: among the stages with their model on the free card and an item waiting, the
// last stage of the pipe gets the card. Slots follow the same rule (share/slot_rule.h). The rule
// for models: the time that each stage is busy, at the pipe's present rate, gives the stage's work
// for one unit that flows through the pipe. From this work follows the rate for any placement of
// models, and models move to the placement with the highest rate. A move must gain enough to pay
// for its loads, so models do not move back and forth. The rule respects each card's memory; the
// board checks the memory again when a load begins.
//
// A stage whose reader is slower stays busy whatever the pipe's rate is, and its results pile up.
// Its work is multiplied by the share of its results that reaches the pipe's end. This share is the
// product, over this and all later stages, of the share of ready results that were handed on
// (share/ordered_flow.h).
//
// The rate that cards allow is computed as follows. A stage s needs w(s) cards for one unit a
// second, and a card computes items of any stage that is loaded there. For a set Q of stages,
// divide the number of cards with a model of Q by the sum of w(s) over Q. The greatest rate is the
// least of these quotients over all Q, by Gale's theorem on supplies and demands (Pacific J. Math.
// 7, 1957). With more than 6 stages only some sets are tried.
//
// Thread-safety: pure functions.
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

/// The rule's input for one stage.
struct CardStage {
  int place = 0;            ///< position in the pipe, greater for later stages
  int next = -1;            ///< index of the stage that reads its output; -1: none
  double passes = 1;        ///< share of its recent ready results that were handed on
  std::int64_t memory = 0;  ///< bytes of its model
  int waiting = 0;          ///< items that wait for a card now
  double work = 0;          ///< cards that it kept busy lately, on average
  double error = 0;         ///< share of `work` that may be chance, 0 to 1
  double short_of = 0;      ///< share of the time in which an item waited for a card, 0 to 1
  bool known = false;       ///< whether it had a card lately
  double idle = 0;          ///< seconds since it had an item, or since it joined
  double load_seconds = 0;  ///< seconds that a load takes
  CardSet may = 0;          ///< cards that it can use
  CardSet loaded = 0;       ///< cards with its model loaded or loading
  CardSet fixed = 0;        ///< cards of `loaded` from which it is not unloaded now
};

/// The rule's input for one card.
struct CardPlace {
  std::int64_t free = 0;  ///< bytes for models, including loaded models
  int sessions = 0;       ///< free sessions; an item gets the card with most of them
};

/// Returns the cards on which the model of each stage is to be loaded. Returns the present cards if
/// no model is to move. `spans`: the stages with averages over several spans of time, shortest
/// first. The shortest span with enough data decides, unless shorter ones contradict it. `lasted`:
/// seconds since a model was last loaded.
std::vector<CardSet> plan_cards(std::span<const std::vector<CardStage>> spans,
                                std::span<const CardPlace> cards, double lasted);

/// The input of card_for_item() for one stage.
struct CardClaim {
  int place = 0;      ///< as CardStage::place
  int waiting = 0;    ///< items that wait for a card
  CardSet ready = 0;  ///< cards where its model is loaded and stays
};

/// Returns the card of `free` (cards without an item) that an item of stage `own` gets, or -1 if it
/// gets none. Sets `left` to whether a free card is left to another stage.
int card_for_item(std::span<const CardClaim> claims, std::size_t own, CardSet free,
                  std::span<const CardPlace> cards, bool* left = nullptr);

}  // namespace vfm::share
