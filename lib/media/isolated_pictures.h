// Inside lib/media only: the memory that the parent and a child of isolated.h share, and the
// pictures in it. The child alone may write there, at any time: the parent copies what it checks
// before it checks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

/// Of a picture: all but where it lies.
struct PictureFacts {
  std::int32_t layout = 0, width = 0, height = 0;
  std::uint8_t full_range = 0, chroma_location = 0, key = 0, interlaced = 0, top_first = 0;
  Color color;
  HdrMetadata hdr;
  std::int64_t pts = 0, duration = 0, index = 0;
};

/// A picture that a child gives, where it lies, and what its decoder says then.
struct Given {
  PictureFacts facts;
  std::array<std::uint64_t, 3> plane{};  ///< from the beginning of the room on
  std::array<std::int32_t, 3> stride{};
  std::uint32_t place = 0;  ///< kNoPlace: it lies at the beginning, until the next request
  std::uint8_t seeks = 0;
  std::int64_t corrupt = 0;
};
/// Places are numbers of pictures that the parent has not done with (Request::done): those stay as
/// they are.
constexpr std::uint32_t kPicturePlaces = 64, kNoPlace = kPicturePlaces;

/// Pictures of one request.
constexpr std::uint32_t kMostAhead = 8;
/// The beginning of the shared memory. After kSharedHead bytes comes its room: first for one
/// picture of any size, or for what else is said; then PictureMemory.
struct SharedHead {
  std::atomic<std::uint64_t> beats{0};
  std::atomic<std::uint64_t> given{0};  ///< since the child began; the last ones are in `ring`
  std::array<Given, kMostAhead> ring;
};
constexpr std::size_t kSharedHead = 4096;
static_assert(sizeof(SharedHead) <= kSharedHead);
/// What any picture takes, a multiple of 64; and with the head and PictureMemory. What is never
/// touched takes no memory.
std::size_t picture_bytes(std::uint64_t max_pixels);
std::size_t shared_bytes(std::uint64_t max_pixels);

/// A frame of these facts over memory at `data`, which has `room` bytes. Throws Error when it does
/// not fit, or no such picture can be. `data` null: only its size is asked for.
struct Placed {
  Frame frame;
  std::size_t bytes = 0;
};
Placed place_picture(const PictureFacts& facts, std::uint8_t* data, std::size_t room);
/// The frame as it lies in a room. Throws Error when it does not lie there, with what may be read
/// behind its planes, or no such picture can be.
Frame picture_at(const Given& given, const std::uint8_t* data, std::size_t room);
PictureFacts facts_of(const Frame& frame);
/// Copies the planes of a frame to those of another one of its layout and size; `cells`: the rows
/// of cell_rows() alone.
void copy_pixels(const Frame& from, const Frame& to, bool cells = false);

}  // namespace vfm::media
