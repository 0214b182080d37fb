// SPDX-License-Identifier: Apache-2.0
#include "media/version.h"

#include <fmt/core.h>

#include "media/libav.h"

namespace vfm::media {

std::string ffmpeg_version() {
  const auto text = [](const char* name, unsigned v) {
    return fmt::format("{} {}.{}.{}", name, AV_VERSION_MAJOR(v), AV_VERSION_MINOR(v),
                       AV_VERSION_MICRO(v));
  };
  return fmt::format("FFmpeg {} ({}, {}, {}, {}, {}; {})\n", av_version_info(),
                     text("libavformat", avformat_version()), text("libavcodec", avcodec_version()),
                     text("libavutil", avutil_version()), text("libswscale", swscale_version()),
                     text("libswresample", swresample_version()), avcodec_license());
}

}  // namespace vfm::media
