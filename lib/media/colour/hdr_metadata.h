// Inside lib/media only: converts HdrMetadata for FFmpeg and encoders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/frame.h"
#include "media/libav.h"

namespace vfm::media {

/// Returns the metadata of a decoded picture. If the picture has no screen data, or no light data,
/// takes these data from `container`.
HdrMetadata hdr_of(const AVFrame& picture, const HdrMetadata& container);
/// Returns the metadata of a stream from its container.
HdrMetadata hdr_of(const AVStream& stream);
/// Makes the muxer write `hdr`. In mp4, `hdr` becomes the boxes mdcv and clli.
void set_hdr(AVStream& stream, const HdrMetadata& hdr);

/// Returns the mastering screen as an option of x264 and x265:
/// "G(8500,39850)B(...)R(...)WP(...)L(max,min)".
std::string screen_text(const HdrMetadata& hdr);
/// Returns the mastering screen as an option of SVT-AV1, in fractions and cd/m2.
std::string screen_text_svt(const HdrMetadata& hdr);
/// Returns the light levels as an option of encoders: "MaxCLL,MaxFALL".
std::string light_text(const HdrMetadata& hdr);

}  // namespace vfm::media
