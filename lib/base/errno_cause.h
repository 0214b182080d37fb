// The Cause of an errno value that a library reports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

namespace vfm {

/// Returns the Cause that fail_errno() gives. Pure.
Cause errno_cause(int err);

}  // namespace vfm
