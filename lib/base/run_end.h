// What ends a run though no input is at fault: a disk without room (full_disk.h), more threads that
// hang than a program should carry (left_behind.h), helpers that are killed again and again.
//
// It ends the run as a signal does, instead of wasting the work on every later item: from then on
// check_stop() (base/stop.h) throws Stopped in every thread, which nothing records or skips, and
// cli/ prints the message kept here. Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm {

/// The run is to end, for the reason that `message` tells: what is wrong, and what to do next. The
/// first one stays.
void end_run(const std::string& message);
/// Whether it is to end, and why.
bool run_ends() noexcept;
std::string run_end_message();
/// For tests.
void forget_run_end();

}  // namespace vfm
