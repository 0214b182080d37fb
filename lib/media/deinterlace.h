// Inside lib/media only: one whole picture of an interlaced frame.
//
// The field that was taken first stays, line for line. The lines of the other are made: from the
// lines above and below (a cubic filter), held within what the same place shows just before and
// just after as far as it is still there. So still parts keep all lines, and what moves has no
// comb. (The idea of motion adaptive deinterlacers such as yadif; one picture a frame.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/frame.h"

namespace vfm::media {

/// `before` and `after`: the frames around; null where there is none. Of `frame` are used: planes,
/// top_first. Exact: whole numbers only.
Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after);

}  // namespace vfm::media
