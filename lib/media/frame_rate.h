// Frame rates as exact fractions, as in video files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rational.h"

namespace vfm::media {

/// nearest_rate() of `fps`. Throws Error for an impossible rate.
Rational frame_rate(double fps);

}  // namespace vfm::media
