// Counts threads that hang in a call of a foreign library, or on a disk. Such a thread cannot be
// ended. It keeps its memory, and may keep a processor busy. Code that stops waiting for a hanging
// thread calls count_left_behind(). A program with hanging threads must end without waiting for
// them, and without freeing memory that they may use (cli/runner.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Limit of hanging threads of a program. One more thread ends the run (base/run_end.h).
constexpr int kMostLeftBehind = 16;

/// Thread-safety: any thread.
void count_left_behind();
/// Counts one hanging thread less, since its call has returned.
void count_returned() noexcept;
/// Number of threads that hang in a foreign library.
int left_behind() noexcept;

/// The same for a thread that hangs on a disk. There is no limit.
void count_left_on_disk() noexcept;
int left_on_disk() noexcept;

}  // namespace vfm
