// The rule for which program of a pipe gets the next free slot (share/pipe_board.h).
//
// The rule: an item to begin comes before help with one under way, and among items that of the
// latest program in the pipe. So work under way ends before more begins: few results lie between
// two programs, the first come out early, and no slot is free while an item waits in any program. A
// program with empty input wants no slot; nor does one that cannot write, since its results, which
// keep their order, wait in a bounded window (share/ordered.h). So slots go to the bottleneck and
// follow it without measuring or tuning. tests/support/simulated_pipe.h has this rule and others
// beside all static splits.
//
// A pure function. Thread-safety: any thread.
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

/// Index of the program that gets a free slot; -1: none wants it.
int next_claim(std::span<const SlotClaim> claims);

}  // namespace vfm::share
