// Files that another host has just written. For up to a minute, the caches of a network file system
// may show such a file as absent, or as it was before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace vfm::io {

/// Calls `look`, which opens files and throws Error if they are not as they were written. Then
/// calls it again, after longer and longer pauses, until it returns. When `seconds` have passed (0:
/// no limit), throws its last Error with Cause::disk. Time in which a call waited in vain is taken
/// from the calls after it, so many files that are gone cost little more than one. Throws Stopped.
/// Thread-safety: any thread.
void look_until_seen(double seconds, const std::function<void()>& look);
/// Gives the calls that follow their whole time again. Call it when a new part begins.
void forget_vain_waits();

}  // namespace vfm::io
