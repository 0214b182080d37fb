// SPDX-License-Identifier: Apache-2.0
#include "media/frame.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/hash.h"

namespace vfm::media {
namespace {

constexpr int kPadding = 64;  // Bytes after each plane, and the alignment of rows.

// Copies samples of `size` bytes. One step right or down in `to` is `step_x` or `step_y` bytes in
// `from`.
template <int size>
void move_samples(const std::uint8_t* from, std::ptrdiff_t step_x, std::ptrdiff_t step_y,
                  std::uint8_t* to, int to_stride, int width, int height) {
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* in = from + y * step_y;
    std::uint8_t* out = to + static_cast<std::ptrdiff_t>(y) * to_stride;
    for (int x = 0; x < width; ++x, in += step_x, out += size)
      std::memcpy(out, in, size);
  }
}

template <int size>
void rotate_plane(const std::uint8_t* from, int stride, int width, int height, int degrees,
                  bool mirror, std::uint8_t* to, int to_stride) {
  // (x0, y0) is the source of the result's (0, 0). The other values are the steps in the source for
  // one step right or down in the result.
  std::ptrdiff_t x0 = 0, y0 = 0, right_x = 0, right_y = 0, down_x = 0, down_y = 0;
  switch (degrees) {
    case 0:
      right_x = 1, down_y = 1;
      break;
    case 90:
      y0 = height - 1, right_y = -1, down_x = 1;
      break;
    case 180:
      x0 = width - 1, y0 = height - 1, right_x = -1, down_y = -1;
      break;
    default:
      x0 = width - 1, right_y = 1, down_x = -1;
      break;
  }
  if (mirror) x0 = width - 1 - x0, right_x = -right_x, down_x = -down_x;
  const bool turned = degrees == 90 || degrees == 270;
  move_samples<size>(from + y0 * stride + x0 * size, right_y * stride + right_x * size,
                     down_y * stride + down_x * size, to, to_stride, turned ? height : width,
                     turned ? width : height);
}

Frame widen_chroma(const Frame& frame) {
  Frame wide = make_frame(PixelLayout::yuv444, frame.width, frame.height);
  for (int y = 0; y < frame.height; ++y) {
    std::memcpy(writable(wide, 0) + static_cast<std::ptrdiff_t>(y) * wide.stride[0],
                frame.plane[0] + static_cast<std::ptrdiff_t>(y) * frame.stride[0],
                static_cast<std::size_t>(frame.width));
    for (int p = 1; p < 3; ++p) {
      const std::uint8_t* in = frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p];
      std::uint8_t* out = writable(wide, p) + static_cast<std::ptrdiff_t>(y) * wide.stride[p];
      for (int x = 0; x < frame.width; ++x)
        out[x] = in[x / 2];
    }
  }
  return wide;
}

}  // namespace

int plane_count(PixelLayout layout) {
  return layout == PixelLayout::gray || layout == PixelLayout::rgb24 ? 1 : 3;
}

bool half_columns(PixelLayout layout) {
  return half_rows(layout) || layout == PixelLayout::yuv422;
}
bool half_rows(PixelLayout layout) {
  return layout == PixelLayout::yuv420 || layout == PixelLayout::yuv420p10;
}

int plane_row_bytes(const Frame& frame, int p) {
  if (frame.layout == PixelLayout::rgb24) return 3 * frame.width;
  const int samples = p > 0 && half_columns(frame.layout) ? (frame.width + 1) / 2 : frame.width;
  return frame.layout == PixelLayout::yuv420p10 ? 2 * samples : samples;
}

int plane_rows(const Frame& frame, int p) {
  return p > 0 && half_rows(frame.layout) ? (frame.height + 1) / 2 : frame.height;
}

void copy_facts(const Frame& from, Frame& to) {
  to.full_range = from.full_range;
  to.color = from.color;
  to.hdr = from.hdr;
  to.chroma_location = from.chroma_location;
  to.pts = from.pts;
  to.duration = from.duration;
  to.index = from.index;
  to.key = from.key;
  to.interlaced = from.interlaced;
  to.top_first = from.top_first;
}

Frame make_frame(PixelLayout layout, int width, int height) {
  if (width <= 0 || height <= 0 || width > 65536 || height > 65536)
    fail("a picture of {}x{} pixels is not possible", width, height);
  Frame frame;
  frame.layout = layout;
  frame.width = width;
  frame.height = height;
  frame.full_range = layout == PixelLayout::rgb24;
  std::size_t offset[3] = {}, size = 0;
  for (int p = 0; p < plane_count(layout); ++p) {
    frame.stride[p] = (plane_row_bytes(frame, p) + kPadding - 1) / kPadding * kPadding;
    offset[p] = size;
    size +=
        static_cast<std::size_t>(frame.stride[p]) * static_cast<std::size_t>(plane_rows(frame, p)) +
        kPadding;
  }
  constexpr std::align_val_t kAlign{kPadding};
  auto* memory = static_cast<std::uint8_t*>(::operator new(size, kAlign));
  std::memset(memory, 0, size);
  frame.owner = std::shared_ptr<const void>(
      memory, [](void* p) { ::operator delete (p, std::align_val_t{kPadding}); });
  for (int p = 0; p < plane_count(layout); ++p)
    frame.plane[p] = memory + offset[p];
  return frame;
}

Frame copy_frame(const Frame& frame) {
  Frame copy = make_frame(frame.layout, frame.width, frame.height);
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      std::memcpy(writable(copy, p) + static_cast<std::ptrdiff_t>(y) * copy.stride[p],
                  frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p],
                  static_cast<std::size_t>(plane_row_bytes(frame, p)));
  copy_facts(frame, copy);
  return copy;
}

Frame rotate_frame(const Frame& frame, int degrees, bool mirror) {
  if (degrees != 0 && degrees != 90 && degrees != 180 && degrees != 270)
    fail("a picture cannot be turned by {} degrees, only by 0, 90, 180 or 270", degrees);
  if (degrees == 0 && !mirror) return frame;
  const bool turned = degrees == 90 || degrees == 270;
  Frame wide;
  if (turned && frame.layout == PixelLayout::yuv422) wide = widen_chroma(frame);
  const Frame& in = wide.owner ? wide : frame;
  Frame out = make_frame(in.layout, turned ? in.height : in.width, turned ? in.width : in.height);
  for (int p = 0; p < plane_count(in.layout); ++p) {
    const int rows = plane_rows(in, p), bytes = plane_row_bytes(in, p);
    if (in.layout == PixelLayout::rgb24)
      rotate_plane<3>(in.plane[p], in.stride[p], in.width, rows, degrees, mirror, writable(out, p),
                      out.stride[p]);
    else if (in.layout == PixelLayout::yuv420p10)
      rotate_plane<2>(in.plane[p], in.stride[p], bytes / 2, rows, degrees, mirror, writable(out, p),
                      out.stride[p]);
    else
      rotate_plane<1>(in.plane[p], in.stride[p], bytes, rows, degrees, mirror, writable(out, p),
                      out.stride[p]);
  }
  copy_facts(frame, out);
  out.chroma_location = 0;  // There is no name for the turned location.
  // resolve_matrix() depends on the size before the rotation, so its result is stored.
  if (turned && frame.layout != PixelLayout::rgb24)
    out.color.matrix = static_cast<std::uint8_t>(resolve_matrix(frame));
  return out;
}

int resolve_matrix(const Frame& frame) {
  switch (frame.color.matrix) {
    case 1:
      return 1;
    case 4:
      return 5;  // FCC equals BT.601 to three digits.
    case 5:
      return 5;
    case 6:
      return 6;
    case 7:
      return 1;  // SMPTE 240M is closest to BT.709.
    case 9:
      return 9;
    case 10:
      return 10;
    case 14:
      return 14;
    default:
      break;
  }
  if (frame.full_range) return 5;
  return frame.width >= 1280 || frame.height > 576 ? 1 : 6;
}

}  // namespace vfm::media
