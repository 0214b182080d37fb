// Inside lib/media only: the data of a codec's callbacks, in its `opaque`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

class PictureMemory;

struct CodecWatch {
  // Facts that a codec only logs, from any of its threads.
  std::atomic<std::int64_t> errors{0};
  std::atomic<std::uint64_t> oversize{0};    ///< width << 32 | height of a picture above max_pixels
  std::atomic<std::uint64_t> impossible{0};  ///< the same for a picture that FFmpeg never decodes
  // Of place_pictures() (picture_memory.h), set before the codec is opened.
  PictureMemory* memory = nullptr;  ///< null: FFmpeg's own
  bool clean = false;  ///< pictures begin black (grey for RGB formats), and not as an older one
};

/// From now on notes this codec's log in `watch`, which must outlive it.
void watch_codec(AVCodecContext* codec, CodecWatch* watch);

}  // namespace vfm::media
