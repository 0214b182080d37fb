// Inside lib/media only: where a codec puts its pictures.
//
// FFmpeg has memory of its own for them. A child of isolated.h gives them places in the memory that
// it shares with its parent, so that nothing need be copied there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "media/codec_watch.h"
#include "media/libav.h"

namespace vfm::media {

/// Borrowed memory that is given out in pieces. It must outlive all that is in it: codecs, frames
/// and what take() returns. Thread-safe.
class PictureMemory {
 public:
  /// `memory` is aligned to kAlign bytes.
  PictureMemory(std::uint8_t* memory, std::size_t size);
  PictureMemory(const PictureMemory&) = delete;
  PictureMemory& operator=(const PictureMemory&) = delete;

  /// A piece, which whoever has it last gives back; null where none so large is free.
  std::shared_ptr<std::uint8_t> take(std::size_t size);
  /// Planes for a picture that will be a Frame as it lies, sized and aligned as FFmpeg's own are.
  /// False, having done nothing: it is none, or there is no room.
  bool give(AVCodecContext& codec, AVFrame& picture);

  static constexpr std::size_t kAlign = 64;

 private:
  std::uint8_t* find(std::size_t size);
  void put_back(const std::uint8_t* piece);
  AVBufferRef* make_buffer(std::size_t size);

  std::uint8_t* memory_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, taken_;  // sizes by places
};

/// From now on this codec, which has a watch, puts its pictures where that says. Before it is
/// opened.
void place_pictures(AVCodecContext* codec);

}  // namespace vfm::media
