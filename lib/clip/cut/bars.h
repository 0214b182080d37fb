// --crop: finds the black bars around a video, and cuts them off.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "media/colour/resizer.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

struct CroppedPicture {
  media::Rectangle picture;   ///< the picture's place in stored frames
  int width = 0, height = 0;  ///< size of frames with these bars

  /// Returns the frame without bars, or unchanged if the frame is not `width` x `height`.
  media::Frame of(const media::Frame& frame) const;
};

/// Decodes the video's key frames, or all frames if key frames are few. Returns nothing if there
/// are no bars. The result depends on the video alone. Throws Error if nothing decodes; Stopped.
std::optional<CroppedPicture> find_picture(const std::string& path,
                                           const media::DecodeOptions& decode);

}  // namespace vfm::clip
