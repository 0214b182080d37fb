// The rule for which program of a pipe gets the next free slot (share/pipe_board.h).
//
// An item that waits to begin gets a free slot before a thread that helps with an item under way.
// If several items wait, the item of the program furthest down the pipe comes first. Then few
// results lie between two programs, the first results come out early, and no slot is free while an
// item waits in any program. A program with empty input wants no slot. A program that cannot write
// wants no slot, either, since only a bounded number of its results may wait (share/ordered.h).
//
// Thread-safety: a pure function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace vfm::share {

/// The use of a slot.
enum class SlotUse { item, help };

/// The rule's input for one program.
struct SlotClaim {
  int place = 0;  ///< position in the pipe, greater for later programs
  int held = 0;   ///< slots that it has
  int most = 0;   ///< slots that it may have (-j)
  int items = 0;  ///< items that wait for a slot
  int help = 0;   ///< threads that would help with items under way
};

/// Returns the index of the program that gets a free slot, or -1 if no program wants it.
int next_claim(std::span<const SlotClaim> claims);

}  // namespace vfm::share
