// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/isolated_pictures.h"

#include <cstring>

#include "base/error.h"
#include "media/colour/cell_rows.h"

namespace vfm::media {
namespace {

constexpr std::size_t kRowAlign = 64;
constexpr int kMostChromaLocation = 6;  // Of AVChromaLocation.

Frame frame_of(const PictureFacts& facts) {
  if (facts.layout < 0 || facts.layout > static_cast<int>(PixelLayout::yuv420p10) ||
      facts.width <= 0 || facts.height <= 0 || facts.width > 65536 || facts.height > 65536 ||
      facts.chroma_location > kMostChromaLocation)
    fail("a picture of {}x{} pixels is not possible", facts.width, facts.height);
  Frame frame;
  frame.layout = static_cast<PixelLayout>(facts.layout);
  frame.width = facts.width;
  frame.height = facts.height;
  frame.full_range = facts.full_range != 0;
  frame.color = facts.color;
  frame.hdr = facts.hdr;
  frame.chroma_location = facts.chroma_location;
  frame.pts = facts.pts;
  frame.duration = facts.duration;
  frame.index = facts.index;
  frame.key = facts.key != 0;
  frame.interlaced = facts.interlaced != 0;
  frame.top_first = facts.top_first != 0;
  return frame;
}

}  // namespace

// A pixel has at most three bytes. Rounding a row up adds less than the row has.
std::size_t picture_bytes(std::uint64_t max_pixels) {
  return kRowAlign * (6 * static_cast<std::size_t>(max_pixels) / kRowAlign) +
         (std::size_t{1} << 20);
}

std::size_t shared_bytes(std::uint64_t max_pixels) {
  // At 1920x1080, enough for a codec's references and some more pictures.
  constexpr std::size_t kPictures = std::size_t{192} << 20;
  return kSharedHead + picture_bytes(max_pixels) + kPictures;
}

PictureFacts facts_of(const Frame& frame) {
  PictureFacts facts;
  facts.layout = static_cast<std::int32_t>(frame.layout);
  facts.width = frame.width;
  facts.height = frame.height;
  facts.full_range = frame.full_range;
  facts.color = frame.color;
  facts.hdr = frame.hdr;
  facts.chroma_location = frame.chroma_location;
  facts.pts = frame.pts;
  facts.duration = frame.duration;
  facts.index = frame.index;
  facts.key = frame.key;
  facts.interlaced = frame.interlaced;
  facts.top_first = frame.top_first;
  return facts;
}

Placed place_picture(const PictureFacts& facts, std::uint8_t* data, std::size_t room) {
  Placed placed;
  Frame& frame = placed.frame;
  frame = frame_of(facts);
  for (int p = 0; p < plane_count(frame.layout); ++p) {
    const auto row = static_cast<std::size_t>(plane_row_bytes(frame, p));
    const std::size_t stride =
        row < kRowAlign ? row : (row + kRowAlign - 1) / kRowAlign * kRowAlign;
    frame.stride[p] = static_cast<int>(stride);
    if (data) frame.plane[p] = data + placed.bytes;
    // Vector code reads a little beyond the end of rows (frame.h).
    placed.bytes += stride * static_cast<std::size_t>(plane_rows(frame, p)) + kRowAlign;
    placed.bytes = (placed.bytes + kRowAlign - 1) / kRowAlign * kRowAlign;
  }
  if (placed.bytes > room)
    fail_as(Cause::limit, "a picture of {}x{} pixels is larger than --max-pixels allows",
            facts.width, facts.height);
  return placed;
}

Frame picture_at(const Given& given, const std::uint8_t* data, std::size_t room) {
  Frame frame = frame_of(given.facts);
  for (int p = 0; p < plane_count(frame.layout); ++p) {
    const auto at = static_cast<std::size_t>(p);
    const std::int64_t row = plane_row_bytes(frame, p), stride = given.stride[at];
    if (stride < row || given.plane[at] > room)
      fail("a plane of {}x{} pixels is not possible", frame.width, frame.height);
    const auto bytes = static_cast<std::size_t>(stride * (plane_rows(frame, p) - 1) + row);
    if (bytes + kRowAlign > room - given.plane[at])
      fail("a plane of {}x{} pixels is not where it can be", frame.width, frame.height);
    frame.plane[p] = data + given.plane[at];
    frame.stride[p] = given.stride[at];
  }
  return frame;
}

void copy_pixels(const Frame& from, const Frame& to, bool cells) {
  for (int p = 0; p < plane_count(from.layout); ++p) {
    const auto bytes = static_cast<std::size_t>(plane_row_bytes(from, p));
    const int rows = plane_rows(from, p);
    const auto copy_row = [&](int y) {
      std::memcpy(
          const_cast<std::uint8_t*>(to.plane[p]) + static_cast<std::ptrdiff_t>(y) * to.stride[p],
          from.plane[p] + static_cast<std::ptrdiff_t>(y) * from.stride[p], bytes);
    };
    const auto copy_cells = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const auto [upper, lower] = cell_rows(i, count, rows);
        copy_row(upper);
        if (lower != upper) copy_row(lower);
      }
    };
    const bool rgb = from.layout == PixelLayout::rgb24;
    if (cells && p == 0) copy_cells(kLumaCellRows);
    if (cells && (p > 0 || rgb)) copy_cells(kChromaCellRows);
    for (int y = 0; !cells && y < rows; ++y)
      copy_row(y);
  }
}

}  // namespace vfm::media
