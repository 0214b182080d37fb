// Inside lib/media only: makes one progressive picture of an interlaced frame.
//
// The lines of the first field stay. Lines of the second field are interpolated from the lines
// above and below (a cubic filter). As far as the place is still, they are clamped to its values
// just before and after. So still parts keep all lines, and motion has no comb. Motion adaptive
// deinterlacers such as yadif work so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/frame.h"

namespace vfm::media {

/// `before` and `after`: the neighbouring frames; null if there is none. Uses the planes and
/// top_first of `frame`. Exact: whole numbers only.
Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after);

}  // namespace vfm::media
