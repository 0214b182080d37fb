// Inside lib/media only: the layout of the memory that a parent and a child of isolated.h share.
// The child can write at any time, so the parent copies data before checking them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

/// The properties of a picture, without its samples.
struct PictureFacts {
  std::int32_t layout = 0, width = 0, height = 0;
  std::uint8_t full_range = 0, chroma_location = 0, key = 0, interlaced = 0, top_first = 0;
  Color color;
  HdrMetadata hdr;
  std::int64_t pts = 0, duration = 0, index = 0;
};

/// The place of a picture from a child, and the state of the decoder after this picture.
struct Given {
  PictureFacts facts;
  std::array<std::uint64_t, 3> plane{};  ///< Offsets of the planes in the shared memory.
  std::array<std::int32_t, 3> stride{};
  std::uint32_t place = 0;  ///< Place number of the picture; see kNoPlace.
  std::uint8_t seeks = 0;
  std::int64_t corrupt = 0;
};
/// Pictures with a place number do not change until the parent frees the place (Request::done). A
/// picture with kNoPlace begins at the start of the room (see PicturesHead), and changes with the
/// next request.
constexpr std::uint32_t kPicturePlaces = 64, kNoPlace = kPicturePlaces;

/// The highest number of pictures in an answer.
constexpr std::uint32_t kMostAhead = 8;
/// The head of the shared memory. The memory after kSharedHead bytes is the room. The room begins
/// with space for one picture of any size, or for other data. PictureMemory uses the rest.
struct PicturesHead {
  std::atomic<std::uint64_t> beats{0};
  /// The number of pictures that the child has given so far. The newest pictures are in `ring`.
  std::atomic<std::uint64_t> given{0};
  std::array<Given, kMostAhead> ring;
};
constexpr std::size_t kSharedHead = 4096;
static_assert(sizeof(PicturesHead) <= kSharedHead);
/// Returns an upper bound of the size of a picture in bytes, as a multiple of 64.
std::size_t picture_bytes(std::uint64_t max_pixels);
/// Returns the size of the shared memory in bytes. Unused parts occupy no memory.
std::size_t shared_bytes(std::uint64_t max_pixels);

/// A frame, and the size of its planes.
struct Placed {
  Frame frame;
  std::size_t bytes = 0;
};
/// Returns a frame with the properties `facts`. Its planes lie in the memory at `data`, which has
/// `room` bytes. Throws Error if the frame is impossible or too large. If `data` is null, computes
/// only the size.
Placed place_picture(const PictureFacts& facts, std::uint8_t* data, std::size_t room);
/// Returns the frame of `given`. Its planes lie in the memory at `data`, which has `room` bytes.
/// Throws Error if the frame is impossible, or if a plane with the 64 bytes after it exceeds this
/// memory.
Frame picture_at(const Given& given, const std::uint8_t* data, std::size_t room);
PictureFacts facts_of(const Frame& frame);
/// Copies the planes to a frame of the same layout and size. If `cells` is true, copies only the
/// rows of cell_rows().
void copy_pixels(const Frame& from, const Frame& to, bool cells = false);

}  // namespace vfm::media
