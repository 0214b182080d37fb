// Ends the work of one thread, which nobody waits for any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace vfm {

/// While `*flag` is true, stop_requested() (base/stop.h) returns true on this thread, and
/// check_stop() throws Stopped. `flag` must outlive the thread, or the next call. Null means that
/// the thread has no flag.
void stop_thread_by(const std::atomic<bool>* flag) noexcept;

}  // namespace vfm
