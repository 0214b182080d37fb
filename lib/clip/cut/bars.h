// Finds the black bars around a video for --crop, and cuts them off.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "media/colour/resizer.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

struct CroppedPicture {
  media::Rectangle picture;   ///< Place of the picture within stored frames.
  int width = 0, height = 0;  ///< Size of the stored frames.

  /// Returns the frame without bars. A frame of another size than `width` x `height` is returned
  /// unchanged.
  media::Frame of(const media::Frame& frame) const;
};

/// Decodes the video's key frames, or all frames if there are few key frames. Returns nullopt for a
/// video without bars. The result depends only on the video. Throws Stopped, and Error if no frame
/// can be decoded.
std::optional<CroppedPicture> find_picture(const std::string& path,
                                           const media::DecodeOptions& decode);

}  // namespace vfm::clip
