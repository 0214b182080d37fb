// What a view of a pipe says of the cards that its programs share: between two looks at them
// (base/card_states.h).
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/card_states.h"

namespace vfm::cli {

/// What a program did with one kind of cards between two looks.
struct CardLook {
  CardStageState state;  ///< at the second one
  double busy = 0;       ///< cards or sessions with an item of it, on average
  double short_of = 0;   ///< share of the time in which an item of it had none, 0 to 1
};

/// Those of the program `pid`. Of one that is new since `before` all that it did counts.
std::vector<CardLook> cards_between(const CardStates& before, const CardStates& after,
                                    double seconds, std::int64_t pid);

/// "2.9 of 3 cards, 4 waiting, card 'x' left out"; "1.4 decode sessions". Without control
/// characters.
std::string card_text(const CardLook& look);

/// Whether items waited for a card most of the time.
bool waits_for_cards(const CardLook& look);
/// Whether more cards would let the program do more: its items wait while it keeps its cards busy.
bool is_short_of_cards(const CardLook& look);
/// Whether that counts as all of so many cards.
bool all_cards_busy(double busy, int cards);

/// Rows of tables of a page, and their heads: of the cards, and of the programs by `name`.
std::vector<std::string> card_columns();
std::vector<std::vector<std::string>> card_rows(const CardStates& states);
std::vector<std::string> card_stage_columns();
std::vector<std::string> card_stage_row(const std::string& name, const CardStageState& state,
                                        double seconds);

}  // namespace vfm::cli
