// Inside lib/media only: the memory that the parent and a child of isolated.h share, and the
// pictures in it. The child can write at any time: the parent copies data, then checks them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

/// The properties of a picture, without its place.
struct PictureFacts {
  std::int32_t layout = 0, width = 0, height = 0;
  std::uint8_t full_range = 0, chroma_location = 0, key = 0, interlaced = 0, top_first = 0;
  Color color;
  HdrMetadata hdr;
  std::int64_t pts = 0, duration = 0, index = 0;
};

/// A picture from a child, its place, and the state of the child's decoder after it.
struct Given {
  PictureFacts facts;
  std::array<std::uint64_t, 3> plane{};  ///< offsets in the room (SharedHead)
  std::array<std::int32_t, 3> stride{};
  std::uint32_t place = 0;  ///< kNoPlace: it is at the room's beginning, until the next request
  std::uint8_t seeks = 0;
  std::int64_t corrupt = 0;
};
/// Places number the pictures in use, which stay unchanged until the parent frees their places
/// (Request::done).
constexpr std::uint32_t kPicturePlaces = 64, kNoPlace = kPicturePlaces;

/// The highest number of pictures that one request returns.
constexpr std::uint32_t kMostAhead = 8;
/// The beginning of the shared memory. The room follows after kSharedHead bytes. It begins with
/// space for one picture of any size, or for other data; PictureMemory follows.
struct PicturesHead {
  std::atomic<std::uint64_t> beats{0};
  std::atomic<std::uint64_t> given{0};  ///< number of pictures so far; `ring` has the last ones
  std::array<Given, kMostAhead> ring;
};
constexpr std::size_t kSharedHead = 4096;
static_assert(sizeof(PicturesHead) <= kSharedHead);
/// Returns the most bytes of a picture, a multiple of 64.
std::size_t picture_bytes(std::uint64_t max_pixels);
/// Returns the bytes of the whole shared memory. Parts that were never used take no memory.
std::size_t shared_bytes(std::uint64_t max_pixels);

/// A frame with these facts, whose planes lie in the `room` bytes at `data`. Throws Error if the
/// frame does not fit or is impossible. If `data` is null, only the size is computed.
struct Placed {
  Frame frame;
  std::size_t bytes = 0;
};
Placed place_picture(const PictureFacts& facts, std::uint8_t* data, std::size_t room);
/// Returns the frame of `given` in a room. Throws Error if the frame is impossible, or if a plane,
/// with the readable bytes after it, does not lie in the room.
Frame picture_at(const Given& given, const std::uint8_t* data, std::size_t room);
PictureFacts facts_of(const Frame& frame);
/// Copies the planes to a frame of the same layout and size. With `cells`, copies only the rows of
/// cell_rows().
void copy_pixels(const Frame& from, const Frame& to, bool cells = false);

}  // namespace vfm::media
