// Inside lib/media only: converts HdrMetadata from and to formats of FFmpeg and the encoders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/frame.h"
#include "media/libav.h"

namespace vfm::media {

/// Returns a decoded picture's metadata; missing screen or light data come from `container`.
HdrMetadata hdr_of(const AVFrame& picture, const HdrMetadata& container);
/// Returns a stream's metadata from its container.
HdrMetadata hdr_of(const AVStream& stream);
/// Makes the muxer write `hdr`, in mp4 as boxes mdcv and clli.
void set_hdr(AVStream& stream, const HdrMetadata& hdr);

/// Returns the mastering screen for x264 and x265: "G(8500,39850)B(...)R(...)WP(...)L(max,min)".
std::string screen_text(const HdrMetadata& hdr);
/// Returns the mastering screen for SVT-AV1, in fractions and cd/m2.
std::string screen_text_svt(const HdrMetadata& hdr);
/// Returns the light levels: "MaxCLL,MaxFALL".
std::string light_text(const HdrMetadata& hdr);

}  // namespace vfm::media
