// How many threads were left behind: each is in a foreign library's call that does not return, and
// cannot be ended. Whoever leaves one behind counts it here; a program that has some must end
// without waiting for them, and without running what they may still use (cli/runner.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Thread-safe. `by`: 1, or -1 for one that has come back after all.
void count_left_behind(int by) noexcept;
int left_behind() noexcept;

}  // namespace vfm
