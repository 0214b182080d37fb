// Who gets the next free slot, of the programs of a pipe that share slots (base/pipe_board.h).
//
// The rule: an item that is to be begun comes before help with one that is under way, and of items
// that of the latest program in the pipe. So what is under way is ended before more is begun: few
// results lie between two programs, the first come out early, and no slot is free while an item
// waits, whichever program it waits in. A program whose input is empty wants no slot; one that
// cannot write neither, since its results, which keep their order, wait in a bounded window
// (base/ordered.h). So nothing has to be measured or tuned for slots to go to the bottleneck, and
// to follow it. tests/support/simulated_pipe.h has this rule and others beside all static splits.
//
// A pure function. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace vfm {

/// What a slot is wanted for.
enum class SlotUse { item, help };

/// What the rule knows of one program.
struct SlotClaim {
  int place = 0;  ///< in the pipe: later ones are greater
  int held = 0;   ///< slots that it has
  int most = 0;   ///< that it may have (-j)
  int items = 0;  ///< that wait for a slot
  int help = 0;   ///< threads that would help with items under way
};

/// Index of the program that a free slot is for; -1: no one wants it.
int next_claim(std::span<const SlotClaim> claims);

}  // namespace vfm
