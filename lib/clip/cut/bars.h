// --crop: the picture of a video without the black bars around it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "media/colour/resizer.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

struct CroppedPicture {
  media::Rectangle picture;   ///< of frames as they are stored
  int width = 0, height = 0;  ///< of the frames that have these bars

  /// The frame without bars; a frame of another size unchanged.
  media::Frame of(const media::Frame& frame) const;
};

/// Looks at the video's key frames, or at all frames if key frames are few. Nothing without bars.
/// The answer depends on the video alone. Throws Error if nothing decodes; Stopped.
std::optional<CroppedPicture> find_picture(const std::string& path,
                                           const media::DecodeOptions& decode);

}  // namespace vfm::clip
