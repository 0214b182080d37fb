// A view of a pipe in words for a terminal: the work of each program, and the bottleneck.
//
// The functions compare two looks at the shared board (share/pipe_board.h). Thread-safety: pure
// functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "share/card_look.h"
#include "share/card_states.h"
#include "share/pipe_board.h"

namespace vfm::share {

/// A program's work between two looks.
struct StageLook {
  StageState state;                  ///< at the second look
  double rate = 0;                   ///< units a second
  double slots = 0;                  ///< average number of its slots
  double waiting = 0;                ///< average number of threads that waited for a slot
  double input = 0;                  ///< share of the time that it waited for input, 0 to 1
  double output = 0;                 ///< share of the time that it waited for its reader
  std::vector<CardLook> cards = {};  ///< its use of each kind of cards
};

struct PipeLook {
  int slots = 0;  ///< shared slots; PipeBoard::kNone: slots of make
  int cards = 0;  ///< shared cards
  double seconds = 0;
  std::vector<StageLook> stages;  ///< in the order of the pipe
  std::string held_up;            ///< bottleneck of a whole run; empty: find_bottleneck() finds it
};

/// Returns the work between two looks. If a program joined after `before`, includes all its work.
PipeLook look_between(const std::vector<StageState>& before, const std::vector<StageState>& after,
                      double seconds, int slots);
/// Adds the programs' use of cards.
void add_cards(PipeLook& look, const CardStates& before, const CardStates& after);

/// The program that holds up the other programs: an index into `stages`, or -1 if none does.
struct Bottleneck {
  int stage = -1;
  std::string why;  ///< "has 11.8 of the 16 slots", "has 5.9 cards, and items wait for more"
};
/// Finds the bottleneck by the first of these rules that applies. A stopped program is the
/// bottleneck. If items of programs wait for cards most of the time, while all cards or these
/// programs' own cards are busy, it is the program with most cards among them. If all slots, or all
/// that a program may have, are in use, it is the program with most slots; more slots, or less work
/// in this program, would help. Otherwise the bottleneck is the program that waits least for input
/// and for its reader, since earlier programs cannot write and later programs lack input. A program
/// that seems to wait for its reader, while its reader waits for input, is slow in writing itself.
/// If the first program waits for input, the input is too slow, and there is no bottleneck.
Bottleneck find_bottleneck(const PipeLook& look);

/// Returns each program's name: "vfm-clip", or "vfm-clip (2)" if an earlier program has the same
/// name.
std::vector<std::string> distinct_names(const std::vector<StageState>& stages);

/// Returns a line for each program, and a line that names the bottleneck, each of at most `width`
/// characters.
std::vector<std::string> pipe_lines(const PipeLook& look, int width);

}  // namespace vfm::share
