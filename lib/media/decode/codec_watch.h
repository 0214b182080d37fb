// Inside lib/media only: data for callbacks of a codec (in AVCodecContext::opaque), and facts that
// the codec logs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

class PictureMemory;

struct CodecWatch {
  // Facts that a codec only logs. The codec's threads write them.
  std::atomic<std::int64_t> errors{0};
  std::atomic<std::uint64_t> oversize{0};    ///< width << 32 | height of a picture above max_pixels
  std::atomic<std::uint64_t> impossible{0};  ///< same for a size that FFmpeg never decodes
  // For place_pictures() (picture_memory.h); set before the codec is opened.
  PictureMemory* memory = nullptr;  ///< null: FFmpeg's memory
  bool clean = false;  ///< clears pictures' memory to black (grey for RGB formats) before decoding
};

/// From now on counts facts of this codec's log in `watch`, which must outlive the codec.
void watch_codec(AVCodecContext* codec, CodecWatch* watch);

}  // namespace vfm::media
