// The version of FFmpeg, for --version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::media {

/// "FFmpeg 5.1.9-0+deb12u1 (libavformat 59.27.100, libavcodec 59.37.100, libavutil 57.28.100,
/// libswscale 6.7.100, libswresample 4.7.100; GPL version 2 or later)", with a line end. The
/// versions are of the loaded libraries, not of those at the build.
std::string ffmpeg_version();

}  // namespace vfm::media
