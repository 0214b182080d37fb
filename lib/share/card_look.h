// Text for people about how programs used shared cards (GPUs) between two looks. A look is one
// reading of share/card_states.h.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "share/card_states.h"

namespace vfm::share {

/// A program's use of one kind of cards between two looks.
struct CardLook {
  CardStageState state;  ///< State at the second look.
  double busy = 0;       ///< Mean number of cards or sessions with an item.
  double short_of = 0;   ///< Share of the time in which an item waited for a card, 0 to 1.
};

/// Returns how the program `pid` used each kind of cards. If the program joined after `before`, the
/// result includes all its work.
std::vector<CardLook> cards_between(const CardStates& before, const CardStates& after,
                                    double seconds, std::int64_t pid);

/// Returns a text without control characters: "2.9 of 3 cards, 4 waiting, card 'x' left out", or
/// "1.4 decode sessions".
std::string card_text(const CardLook& look);

/// Returns whether items waited for a card most of the time.
bool waits_for_cards(const CardLook& look);
/// Returns whether more cards would make the program faster: its items wait, and all its cards are
/// busy.
bool is_short_of_cards(const CardLook& look);
/// Returns whether `busy`, the mean number of busy cards, is nearly `cards`.
bool all_cards_busy(double busy, int cards);

/// Return headings and rows of two tables of an HTML page: one table of cards, and one of programs.
std::vector<std::string> card_columns();
std::vector<std::vector<std::string>> card_rows(const CardStates& states);
std::vector<std::string> card_stage_columns();
std::vector<std::string> card_stage_row(const std::string& name, const CardStageState& state,
                                        double seconds);

}  // namespace vfm::share
