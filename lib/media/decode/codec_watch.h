// Inside lib/media only: counts errors that a codec logs, and holds data for callbacks of the codec
// (AVCodecContext::opaque).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

class PictureMemory;

struct CodecWatch {
  // The number of errors that the codec logs. The codec's threads write this and the next two
  // members.
  std::atomic<std::int64_t> errors{0};
  /// The size of a picture above max_pixels, as width << 32 | height.
  std::atomic<std::uint64_t> oversize{0};
  /// The size of a picture that FFmpeg never decodes, as width << 32 | height.
  std::atomic<std::uint64_t> impossible{0};
  // Settings for place_pictures() (picture_memory.h), to be set before the codec is opened.
  PictureMemory* memory = nullptr;  ///< Memory for pictures; null for FFmpeg's memory.
  bool clean = false;               ///< Makes pictures black (RGB: grey) before decoding.
};

/// Makes `watch` record what this codec logs. `watch` must outlive the codec.
void watch_codec(AVCodecContext* codec, CodecWatch* watch);

}  // namespace vfm::media
