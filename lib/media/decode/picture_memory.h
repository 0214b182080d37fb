// Inside lib/media only: lets a codec decode into given memory, not FFmpeg's. A child of isolated.h
// shares this memory with its parent, so that no copy is needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "media/decode/codec_watch.h"
#include "media/libav.h"

namespace vfm::media {

/// Allocates from borrowed memory. The object must outlive its users: codecs, frames and results of
/// take(). Thread-safe.
class PictureMemory {
 public:
  /// `memory` is aligned to kAlign bytes.
  PictureMemory(std::uint8_t* memory, std::size_t size);
  PictureMemory(const PictureMemory&) = delete;
  PictureMemory& operator=(const PictureMemory&) = delete;

  /// Returns a piece of the memory, which is freed with its last reference, or null if there is no
  /// room.
  std::shared_ptr<std::uint8_t> take(std::size_t size);
  /// Gives a picture planes that a Frame can use without a copy, sized and aligned like FFmpeg's
  /// planes. Returns false, without changes, if the pixel format is not one of Frame's, or if there
  /// is no room.
  bool give(AVCodecContext& codec, AVFrame& picture);

  static constexpr std::size_t kAlign = 64;

 private:
  std::uint8_t* find(std::size_t size);
  void put_back(const std::uint8_t* piece);
  AVBufferRef* make_buffer(std::size_t size);

  std::uint8_t* memory_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, taken_;  // offset to size
};

/// Makes this codec decode into CodecWatch::memory. Call it before the codec is opened.
void place_pictures(AVCodecContext* codec);

}  // namespace vfm::media
