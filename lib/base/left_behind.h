// How many threads were left behind: each is in a foreign library's call that does not return, and
// cannot be ended. Whoever leaves one behind counts it here; a program that has some must end
// without waiting for them, and without running what they may still use (cli/runner.cc).
//
// Each keeps its memory, and perhaps a processor, for as long as the program runs. So a program
// carries kMostLeftBehind of them at a time. With one more, the run ends (base/run_end.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// What else waits at that moment for a call that hangs may come on top: at most one a slot.
constexpr int kMostLeftBehind = 16;

/// Thread-safe. One more was left behind.
void count_left_behind();
/// One of them has come back after all.
void count_returned() noexcept;
int left_behind() noexcept;

}  // namespace vfm
