// Inside lib/dist only: how a loop that waits for other ranks notices that its own process did not
// run for a while, since the job or its machine was suspended. The others then did not run either.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::dist {

/// Whether the process did not run between two turns of a loop that pauses for `turn` seconds, of
/// which the second came `passed` seconds after the first. On a busy machine a turn may be late by
/// less than a second.
inline bool was_stopped(double passed, double turn) {
  return passed > turn + 1;
}

/// The seconds of waiting that such a turn counts: `passed`, but a turn alone after a stop.
inline double seconds_ran(double passed, double turn) {
  return was_stopped(passed, turn) ? turn : passed;
}

}  // namespace vfm::dist
