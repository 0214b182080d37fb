// Inside lib/media only: HdrMetadata from and to where FFmpeg and the encoders keep it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/frame.h"
#include "media/libav.h"

namespace vfm::media {

/// What a decoded picture says; of screen and light each what it lacks is taken from `container`.
HdrMetadata hdr_of(const AVFrame& picture, const HdrMetadata& container);
/// What the container says of a stream.
HdrMetadata hdr_of(const AVStream& stream);
/// Makes the muxer write it: boxes mdcv and clli in mp4.
void set_hdr(AVStream& stream, const HdrMetadata& hdr);

/// The mastering screen as x264 and x265 want it, "G(8500,39850)B(...)R(...)WP(...)L(max,min)";
/// as SVT-AV1 wants it, in fractions and cd/m2.
std::string screen_text(const HdrMetadata& hdr);
std::string screen_text_svt(const HdrMetadata& hdr);
/// "MaxCLL,MaxFALL".
std::string light_text(const HdrMetadata& hdr);

}  // namespace vfm::media
