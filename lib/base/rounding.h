// Numbers as JSON records hold them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// `value` to six digits after the point: enough for every measure, and short in JSON.
double six_digits(double value);

}  // namespace vfm
