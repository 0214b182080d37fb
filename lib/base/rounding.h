// Rounds numbers for JSON records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Returns `value` rounded to six digits after the point.
double six_digits(double value);

}  // namespace vfm
