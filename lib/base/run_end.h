// Ends a run for a reason other than an input: a full disk (full_disk.h), too many hanging threads
// (left_behind.h), or processes that are killed again and again.
//
// After end_run(), check_stop() (base/stop.h) throws Stopped in every thread, as after a signal.
// Stopped is not recorded as an item's error. cli/ prints the message. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm {

/// Ends the run. `message` says what is wrong and what to do next. Only the first message is kept.
void end_run(const std::string& message);
/// run_ends() returns whether the run must end, and run_end_message() returns the message.
bool run_ends() noexcept;
std::string run_end_message();
/// Undoes end_run(), for tests.
void forget_run_end();

}  // namespace vfm
