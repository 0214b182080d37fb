// Which failures are one clip's own: they are recorded, and the other clips are made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace vfm {

/// Does `work` for one clip. Returns why it could not be done: the text of its Error, or that
/// memory did not suffice; empty if it was done. What is not the clip's fault ends the run and
/// passes: Stopped, an Error of kind device, as GpuError (tensor/device.h) is, and what is no
/// Error. `cause`, if given, is set to the failure's. Thread-safe.
std::string failure_of(const std::function<void()>& work, Cause* cause = nullptr);

}  // namespace vfm
