// What threads do where they would heed a stop (base/stop.h), beside that.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// From now on check_stop() calls `act` in every thread, before it looks for a stop. `act` may
/// wait, and throws nothing.
void act_at_safe_points(void (*act)()) noexcept;

}  // namespace vfm
