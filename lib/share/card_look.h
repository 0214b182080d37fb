// The use of shared cards between two looks at them (share/card_states.h), for a view of a pipe.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "share/card_states.h"

namespace vfm::share {

/// A program's use of one kind of cards between two looks.
struct CardLook {
  CardStageState state;  ///< at the second one
  double busy = 0;       ///< average number of cards or sessions with its items
  double short_of = 0;   ///< share of the time in which an item of it had no card, 0 to 1
};

/// The looks of the program `pid`. If it is new since `before`, all its work counts.
std::vector<CardLook> cards_between(const CardStates& before, const CardStates& after,
                                    double seconds, std::int64_t pid);

/// "2.9 of 3 cards, 4 waiting, card 'x' left out"; "1.4 decode sessions". Without control
/// characters.
std::string card_text(const CardLook& look);

/// True if items waited for a card most of the time.
bool waits_for_cards(const CardLook& look);
/// True if more cards would speed the program up: its items wait while it keeps its cards busy.
bool is_short_of_cards(const CardLook& look);
/// True if `busy` counts as all of `cards`.
bool all_cards_busy(double busy, int cards);

/// Rows of tables of a page, and their heads: for the cards, and for the programs by `name`.
std::vector<std::string> card_columns();
std::vector<std::vector<std::string>> card_rows(const CardStates& states);
std::vector<std::string> card_stage_columns();
std::vector<std::string> card_stage_row(const std::string& name, const CardStageState& state,
                                        double seconds);

}  // namespace vfm::share
