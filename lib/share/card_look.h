// The use of shared cards (GPUs) between two looks at their state (share/card_states.h), as text
// for people.
//
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "share/card_states.h"

namespace vfm::share {

/// A program's use of one kind of cards between two looks.
struct CardLook {
  CardStageState state;  ///< at the second look
  double busy = 0;       ///< average number of cards or sessions with the program's items
  double short_of = 0;   ///< share of the time in which an item waited, 0 to 1
};

/// Returns how the program `pid` used each kind of cards. If it joined after `before`, includes all
/// its work.
std::vector<CardLook> cards_between(const CardStates& before, const CardStates& after,
                                    double seconds, std::int64_t pid);

/// Returns text without control characters: "2.9 of 3 cards, 4 waiting, card 'x' left out"; "1.4
/// decode sessions".
std::string card_text(const CardLook& look);

/// Returns whether items waited for a card most of the time.
bool waits_for_cards(const CardLook& look);
/// Returns whether more cards would speed the program up: its items wait while it keeps its cards
/// busy.
bool is_short_of_cards(const CardLook& look);
/// Returns whether `busy` is so close to `cards` that all cards are regarded as busy.
bool all_cards_busy(double busy, int cards);

/// Return headings and rows of two tables of an HTML page: a table of cards, and a table of
/// programs.
std::vector<std::string> card_columns();
std::vector<std::vector<std::string>> card_rows(const CardStates& states);
std::vector<std::string> card_stage_columns();
std::vector<std::string> card_stage_row(const std::string& name, const CardStageState& state,
                                        double seconds);

}  // namespace vfm::share
