// The rules for programs that share cards (share/card_board.h): on which cards each stage of a pipe
// has its model loaded, and which card an item gets.
//
// The rule for items is that of slots (share/slot_rule.h): a free card is for the latest stage that
// has an item waiting and its model there. The rule for models: how busy each stage is, at the
// pipe's present rate, tells its work for one unit of what flows through the pipe. From this
// follows the rate under any other placement, and models move to the placement with the highest. A
// move must gain enough to pay for its loads, so models do not move to and fro. Memory is kept by
// the rule, and again by the board when a load begins. tests/support/simulated_cards.h has this
// rule beside all static splits.
//
// A stage whose results pile up, since its reader is slower, stays busy whatever the pipe's rate
// is. Its work counts by the share that reaches the pipe's end: of the results that were ready,
// those that it, and each stage behind it, could hand on (share/ordered_flow.h).
//
// The rate that cards allow: stage s needs w(s) cards of speed 1 for a unit a second; card c has
// speed v(c) and does items of any stage that is loaded there. The greatest rate is the least, over
// all sets Q of stages, of the sum of v(c), over cards with a model of Q, through the sum of w(s)
// over Q: these cards can do no more, and by Gale's theorem on supplies and demands (Pacific J.
// Math. 7, 1957) they can do as much. With more than 6 stages only some sets are tried.
//
// Pure functions. Thread-safety: any thread.
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
  int next = -1;            ///< the given stage that reads its output; -1: none of them
  double passes = 1;        ///< share of its lately ready results that could be handed on
  std::int64_t memory = 0;  ///< bytes of its model
  int waiting = 0;          ///< items that wait for a card now
  double work = 0;          ///< cards of speed 1 that it lately kept busy for the pipe, on average
  double error = 0;         ///< share of `work` that may be chance, 0 to 1
  double short_of = 0;      ///< share of that time in which an item waited for a card, 0 to 1
  bool known = false;       ///< whether it had a card in that time
  double idle = 0;          ///< seconds since it had an item, or since it joined
  double load_seconds = 0;  ///< seconds that a load takes
  CardSet may = 0;          ///< cards that it can use: its own, not left out
  CardSet loaded = 0;       ///< cards with its model loaded or loading
  CardSet fixed = 0;        ///< those of `loaded` where it does not unload now
};

/// The rule's input for one card.
struct CardPlace {
  std::int64_t free = 0;  ///< bytes for models, those that are loaded included
  double speed = 1;       ///< on average 1
};

/// Returns the cards on which the model of each stage is to be loaded; the present ones where
/// nothing is to move. `spans`: the stages by their averages over several spans of time, shortest
/// first. The shortest span that tells enough decides, unless shorter ones speak against it.
/// `lasted`: seconds since a model was last loaded.
std::vector<CardSet> plan_cards(std::span<const std::vector<CardStage>> spans,
                                std::span<const CardPlace> cards, double lasted);

/// The input of card_for_item() for one stage.
struct CardClaim {
  int place = 0;      ///< as above
  int waiting = 0;    ///< items
  CardSet ready = 0;  ///< cards where its model is loaded and stays
};

/// The one of the `free` cards (those without an item) that an item of stage `own` gets; -1: none.
/// `left`: set to whether a card is left for a later stage.
int card_for_item(std::span<const CardClaim> claims, std::size_t own, CardSet free,
                  std::span<const CardPlace> cards, bool* left = nullptr);

}  // namespace vfm::share
