// One view of a pipe: what each of its programs does, and which of them holds the others up.
//
// Made of two looks at the board that they share (base/pipe_board.h), in words for a terminal.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/card_states.h"
#include "base/pipe_board.h"
#include "cli/card_look.h"

namespace vfm::cli {

/// What a program did between two looks.
struct StageLook {
  StageState state;                  ///< at the second one
  double rate = 0;                   ///< units a second
  double slots = 0;                  ///< that it had, on average
  double waiting = 0;                ///< threads that waited for a slot, on average
  double input = 0;                  ///< share of the time that it waited for input, 0 to 1
  double output = 0;                 ///< and for whoever reads its output
  std::vector<CardLook> cards = {};  ///< of each kind that it uses
};

struct PipeLook {
  int slots = 0;  ///< that are shared; PipeBoard::kNone: make's
  int cards = 0;  ///< that are shared
  double seconds = 0;
  std::vector<StageLook> stages;  ///< in the order of the pipe
};

/// Of programs that are new since `before` all that they did counts.
PipeLook look_between(const std::vector<StageState>& before, const std::vector<StageState>& after,
                      double seconds, int slots);
/// Adds what the programs did with cards.
void add_cards(PipeLook& look, const CardStates& before, const CardStates& after);

/// The program that holds the others up: a place in `stages`, or -1 where none does.
struct Bottleneck {
  int stage = -1;
  std::string why;  ///< "has 11.8 of the 16 slots", "has 5.9 cards, and items wait for more"
};
/// A program that is stopped, the first of them. Else, where items wait for cards most of the time,
/// and all cards are busy, or those of the program that waits, it is who has most cards of those.
/// Else, where the slots are in use, all or all that it may have, it is who has most of them: more
/// slots would help, or less work there. Else it is the program that waits least, for input and for
/// its reader: those before it are held up by what they cannot write, those behind it by what does
/// not come. A program that is said to wait for its reader, while that one waits for input, is slow
/// in writing itself. Where the first program waits for input, that comes too slowly: none.
Bottleneck find_bottleneck(const PipeLook& look);

/// "vfm-clip", or "vfm-clip (2)" where an earlier program has the name, too.
std::vector<std::string> distinct_names(const std::vector<StageState>& stages);

/// A line a program and one that names the bottleneck, each of at most `width` characters.
std::vector<std::string> pipe_lines(const PipeLook& look, int width);

}  // namespace vfm::cli
