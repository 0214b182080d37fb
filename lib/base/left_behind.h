// The count of threads left behind: each hangs in a foreign library's call and cannot be ended.
// Code that leaves one behind counts it here. A program that has some must end without waiting for
// them and without freeing what they may still use (cli/runner.cc).
//
// Each keeps its memory, and perhaps a processor, until the program ends. So a program may have
// kMostLeftBehind at a time. With one more, the run ends (base/run_end.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Calls that hang at the moment of the limit may exceed it, by at most one a slot.
constexpr int kMostLeftBehind = 16;

/// Thread-safe. Counts one more.
void count_left_behind();
/// Counts one that has returned after all.
void count_returned() noexcept;
int left_behind() noexcept;

}  // namespace vfm
