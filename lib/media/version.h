// Reads the version of FFmpeg, for --version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::media {

/// Returns the versions of the loaded FFmpeg libraries, as a text with a line end: "FFmpeg
/// 5.1.9-0+deb12u1 (libavformat 59.27.100, libavcodec 59.37.100, libavutil 57.28.100, libswscale
/// 6.7.100, libswresample 4.7.100; GPL version 2 or later)".
std::string ffmpeg_version();

}  // namespace vfm::media
