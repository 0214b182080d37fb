// Tells failures of a single clip, after which a run goes on, from failures that end the run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace vfm {

/// Does `work` for one clip. Returns empty if it was done, else the text of its Error or that
/// memory did not suffice; then `cause`, if given, is set to the cause of the failure. Failures
/// that are not the clip's fault end the run, so they are rethrown: an Error of kind device, such
/// as GpuError (tensor/device.h), Stopped, and any other exception that is not an Error.
/// Thread-safe.
std::string failure_of(const std::function<void()>& work, Cause* cause = nullptr);

}  // namespace vfm
