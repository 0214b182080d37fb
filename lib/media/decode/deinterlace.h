// Inside lib/media only: one whole picture of an interlaced frame.
//
// The first field stays, line for line. The other's lines are interpolated from the lines above and
// below (a cubic filter), clamped to the same place just before and just after as far as it is
// still. So still parts keep all lines, and motion has no comb. (The idea of motion adaptive
// deinterlacers such as yadif; one picture a frame.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/frame.h"

namespace vfm::media {

/// `before` and `after`: the frames around; null if there is none. Uses the planes and top_first of
/// `frame`. Exact: whole numbers only.
Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after);

}  // namespace vfm::media
