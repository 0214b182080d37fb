// Ends a run for a reason that is no input's fault: a full disk (full_disk.h), too many hanging
// threads (left_behind.h), helpers that are killed again and again.
//
// The run then ends as by a signal: from then on check_stop() (base/stop.h) throws Stopped in every
// thread. No item records this as its error, and cli/ prints the message kept here. Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm {

/// Ends the run. `message` says what is wrong and what to do next; the first message is kept.
void end_run(const std::string& message);
/// Return whether the run is to end, and why.
bool run_ends() noexcept;
std::string run_end_message();
/// Undoes end_run(), for tests.
void forget_run_end();

}  // namespace vfm
