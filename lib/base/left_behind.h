// Counts threads that hang in a foreign library's call. Such a thread cannot be ended; code that
// stops waiting for one counts it here. A program with such threads must end without waiting for
// them and without freeing what they may still use (cli/runner.cc).
//
// Each such thread keeps its memory, and perhaps a processor, so a program may have at most
// kMostLeftBehind at a time. One more such thread ends the run (base/run_end.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Calls that already hang when the limit is reached may exceed it, by at most one for each slot.
constexpr int kMostLeftBehind = 16;

/// Counts one more thread. Thread-safe.
void count_left_behind();
/// Counts one thread less: its call has returned after all.
void count_returned() noexcept;
int left_behind() noexcept;

}  // namespace vfm
