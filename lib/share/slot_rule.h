// The rule that decides which program of a pipe gets the next free slot (share/pipe_board.h).
//
// An item that waits to begin gets a slot before a thread that helps with an item under way. Of
// several programs with waiting items, the program nearest to the end of the pipe gets the slot, so
// that few results wait between two programs. A program with empty input, or a program that cannot
// write its results, wants no slot.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace vfm::share {

/// The use of a slot: `item` is work on an item, and `help` is work for another thread's item.
enum class SlotUse { item, help };

/// The input of next_claim() for one program.
struct SlotClaim {
  int place = 0;  ///< Position in the pipe. Later programs have greater numbers.
  int held = 0;   ///< Slots that the program has.
  int most = 0;   ///< Largest number of slots that the program may have (-j).
  int items = 0;  ///< Items that wait for a slot.
  int help = 0;   ///< Threads that could help with items under way.
};

/// Returns the index of the program that gets a free slot, or -1 if no program wants a slot.
int next_claim(std::span<const SlotClaim> claims);

}  // namespace vfm::share
