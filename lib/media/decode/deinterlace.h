// Inside lib/media only: converts an interlaced frame to a progressive picture. Lines of the later
// field are interpolated. Parts without motion keep all lines, as with yadif.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/frame.h"

namespace vfm::media {

/// Returns the progressive picture of `frame`, which must have planes. Uses Frame::top_first.
/// `before` and `after` are the previous and the next frame, or null at an end of the video.
Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after);

}  // namespace vfm::media
