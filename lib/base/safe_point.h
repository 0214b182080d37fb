// An action that threads do at safe points, which are the places where they check for a stop
// (base/stop.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Makes check_stop(), in every thread, call `act` before looking for a stop. `act` may wait, but
/// must not throw.
void act_at_safe_points(void (*act)()) noexcept;

}  // namespace vfm
