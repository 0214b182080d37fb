// Inside lib/media only: makes one progressive picture of an interlaced frame.
//
// The lines of the first field stay. Lines of the second field are interpolated from the lines
// above and below (a cubic filter). Where the picture does not move, interpolated pixels are
// clamped to the pixels at the same position in the fields just before and after. Parts at rest
// therefore keep all lines, and motion has no comb, as with yadif.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/frame.h"

namespace vfm::media {

/// `before` and `after` are the neighbouring frames, or null if there is none. Uses the planes and
/// top_first of `frame`. The result is exact.
Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after);

}  // namespace vfm::media
