// On which cards the stages of a pipe have their models loaded, and which card an item gets, of the
// programs that share cards (base/card_board.h).
//
// The rule for items is that of slots (base/slot_rule.h): a free card is for the latest stage that
// has an item waiting and its model there. The rule for models: what the stages keep busy, at the
// rate that the pipe has now, tells how much each has to do for one unit of what flows through
// them; so it tells what rate any other way of loading would allow, and models are moved to where
// that is most. A move must gain enough to pay for its loads, so nothing goes to and fro. Memory is
// kept by the rule, and again by the board when a load begins. tests/support/simulated_cards.h has
// this rule beside all static splits.
//
// A stage whose results pile up, as whoever reads them is slower, keeps busy what it has, whatever
// the pipe's rate is. Of its work counts the share that goes on to the pipe's end: results that it,
// and each stage behind it, could hand on, of those that were ready (base/ordered_flow.h).
//
// The rate that cards allow: stages S need w(s) of cards of speed 1 for a unit a second, card c has
// speed v(c) and does items of any stage that is loaded there. The greatest rate is the least, over
// all sets Q of stages, of the sum of v(c), over cards with a model of Q, through the sum of w(s)
// over Q: no more can be asked of these cards, and by Gale's theorem on supplies and demands
// (Pacific J. Math. 7, 1957) that is enough. Of more than 6 stages only some sets are looked at.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vfm {

constexpr int kMostCards = 64;
/// A set of cards: bit i is card i.
using CardSet = std::uint64_t;
constexpr CardSet card_bit(int card) {
  return CardSet{1} << card;
}

/// What the rule knows of one stage.
struct CardStage {
  int place = 0;            ///< in the pipe: later ones are greater
  int next = -1;            ///< the stage that reads what it writes, of those given; -1: another
  double passes = 1;        ///< share of its results that was ready lately and could be handed on
  std::int64_t memory = 0;  ///< of its model, bytes
  int waiting = 0;          ///< items that wait for a card now
  double work = 0;          ///< cards of speed 1 that it kept busy for the pipe, on average, lately
  double error = 0;         ///< the share of `work` that may be chance, 0 to 1
  double short_of = 0;      ///< share of that time in which an item waited for a card, 0 to 1
  bool known = false;       ///< it had a card in that time
  double idle = 0;          ///< seconds since it had an item, or since it joined
  double load_seconds = 0;  ///< that its loads take
  CardSet may = 0;          ///< cards that it can use: its own, not left out
  CardSet loaded = 0;       ///< its model is there, or is being loaded
  CardSet fixed = 0;        ///< of these: it does not unload there now
};

/// What it knows of one card.
struct CardPlace {
  std::int64_t free = 0;  ///< bytes for models, those that are loaded included
  double speed = 1;       ///< on average 1
};

/// On which cards the model of each stage is to be loaded; as it is where nothing is to be moved.
/// `spans`: the stages by what they did in spans of time of unlike length, the shortest first. The
/// shortest that tells enough decides, where the shorter ones do not speak against it. `lasted`:
/// seconds since a model was last loaded.
std::vector<CardSet> plan_cards(std::span<const std::vector<CardStage>> spans,
                                std::span<const CardPlace> cards, double lasted);

/// What an item can be given to.
struct CardClaim {
  int place = 0;      ///< as above
  int waiting = 0;    ///< items
  CardSet ready = 0;  ///< its model is loaded there, and stays
};

/// Which of the `free` cards (on which no item is) an item of stage `own` gets; -1: none.
/// `left`: whether there is one that is left to a later stage.
int card_for_item(std::span<const CardClaim> claims, std::size_t own, CardSet free,
                  std::span<const CardPlace> cards, bool* left = nullptr);

}  // namespace vfm
