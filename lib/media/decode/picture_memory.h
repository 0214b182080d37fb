// Inside lib/media only: lets a codec decode into given memory instead of FFmpeg's memory.
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

/// An allocator for memory of the caller. The object must outlive the results of take(), and all
/// codecs and frames that use the memory. Thread-safe.
class PictureMemory {
 public:
  /// Uses `size` bytes at `memory`, which must be aligned to kAlign bytes.
  PictureMemory(std::uint8_t* memory, std::size_t size);
  PictureMemory(const PictureMemory&) = delete;
  PictureMemory& operator=(const PictureMemory&) = delete;

  /// Returns `size` bytes, or null if too few bytes are free. The last reference frees the bytes.
  std::shared_ptr<std::uint8_t> take(std::size_t size);
  /// Allocates planes that a Frame can use without a copy. Returns false, without changes, if the
  /// pixel format is not a PixelLayout, or if too few bytes are free.
  bool give(AVCodecContext& codec, AVFrame& picture);

  static constexpr std::size_t kAlign = 64;

 private:
  std::uint8_t* find(std::size_t size);
  void put_back(const std::uint8_t* piece);
  AVBufferRef* make_buffer(std::size_t size);

  std::uint8_t* memory_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, taken_;
};

/// Makes the codec decode into CodecWatch::memory. Must be called before the codec is opened.
void place_pictures(AVCodecContext* codec);

}  // namespace vfm::media
