// Ends a run for a reason that is no input's fault: a disk without room (full_disk.h), more threads
// that hang than a program should carry (left_behind.h), helpers that are killed again and again.
//
// The run ends as by a signal, since every later item would fail, too: from then on check_stop()
// (base/stop.h) throws Stopped in every thread, which nothing records or skips, and cli/ prints the
// message kept here. Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm {

/// Ends the run. `message` says what is wrong and what to do next; the first one is kept.
void end_run(const std::string& message);
/// Whether the run is to end, and why.
bool run_ends() noexcept;
std::string run_end_message();
/// For tests.
void forget_run_end();

}  // namespace vfm
