// SPDX-License-Identifier: Apache-2.0
#include "ops/picture/scale_picture.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "ops/picture/scale_picture_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

constexpr int kMostSide = 65535;

// Of `from` samples; nothing outside them is read.
void check(const PictureTaps& taps, int from, int to) {
  bool good = taps.size > 0 && taps.size <= from &&
              taps.first.size() == static_cast<std::size_t>(to) &&
              taps.weights.size() == taps.first.size() * static_cast<std::size_t>(taps.size);
  for (const std::int32_t first : taps.first)
    good = good && first >= 0 && first <= from - taps.size;
  if (!good) fail("a picture of {} samples cannot be scaled to {} by these weights", from, to);
}

}  // namespace

PictureTables picture_tables(const PictureScale& s, Device device) {
  for (const int side : {s.width, s.height, s.to_width, s.to_height})
    if (side < 1 || side > kMostSide) fail("a picture of {} pixels cannot be scaled", side);
  check(s.luma_x, s.width, s.to_width);
  check(s.chroma_x, (s.width + 1) / 2, s.to_width);
  check(s.luma_y, s.height, s.to_height);
  check(s.chroma_y, (s.height + 1) / 2, s.to_height);
  std::vector<std::int32_t> all;
  for (const PictureTaps* taps : {&s.luma_x, &s.chroma_x, &s.luma_y, &s.chroma_y}) {
    all.insert(all.end(), taps->first.begin(), taps->first.end());
    all.insert(all.end(), taps->weights.begin(), taps->weights.end());
  }
  PictureTables tables{s, VFM_ASK(Tensor(), Touching(device), picture_taps, all)};
  return tables;
}

Tensor picture_room(const Shape& shape, Device device) {
  return VFM_ASK(Tensor(), Touching(device), picture_room, shape);
}

void put_pictures(const Tensor& host, const Tensor& room) {
  if (host.device() != Device::cpu || host.dtype() != DType::u8 || room.dtype() != DType::u8 ||
      host.elements() != room.elements())
    fail("pictures {} are to be put into {}", to_string(host.shape()), to_string(room.shape()));
  VFM_RUN(Touching(room), put_pictures, host, room);
}

PictureParts::PictureParts(const PictureTables& tables) {
  const std::int32_t* at = tables.taps.data<std::int32_t>();
  const auto next = [&](const PictureTaps& taps) {
    const Part part{at, at + taps.first.size(), taps.size};
    at += taps.first.size() + taps.weights.size();
    return part;
  };
  const PictureScale& s = tables.numbers;
  luma_x = next(s.luma_x), chroma_x = next(s.chroma_x);
  luma_y = next(s.luma_y), chroma_y = next(s.chroma_y);
}

PicturePlace picture_place(int width, int height, int degrees, bool mirror, bool mirror_after) {
  // Where (x, y) goes: column = cx + x * cxx + y * cxy, and the row likewise.
  struct Line {
    std::int64_t begin, of_x, of_y;
  };
  const bool turned = degrees == 90 || degrees == 270;
  const std::int64_t w = width, h = height, image_width = turned ? h : w;
  Line x{0, 1, 0};  // after the first mirror
  if (mirror) x = {w - 1, -1, 0};
  const auto against = [](std::int64_t last, const Line& line) {
    return Line{last - line.begin, -line.of_x, -line.of_y};
  };
  const Line y{0, 0, 1};
  Line column = x, row = y;
  switch (degrees) {
    case 0:
      break;
    case 90:
      column = against(h - 1, y), row = x;
      break;
    case 180:
      column = against(w - 1, x), row = against(h - 1, y);
      break;
    case 270:
      column = y, row = against(w - 1, x);
      break;
    default:
      fail("a picture cannot be turned by {} degrees, only by 0, 90, 180 or 270", degrees);
  }
  if (mirror_after) column = against(image_width - 1, column);
  return {3 * (row.begin * image_width + column.begin), 3 * (row.of_x * image_width + column.of_x),
          3 * (row.of_y * image_width + column.of_y)};
}

void scale_picture(const PictureTables& tables, const PicturePlanes& planes,
                   const PicturePlace& place, const Tensor& image) {
  const PictureScale& s = tables.numbers;
  const std::int64_t last_x = s.to_width - 1, last_y = s.to_height - 1;
  const auto reaches = [&](bool most) {
    const auto part = [most](std::int64_t step) {
      return most ? std::max<std::int64_t>(step, 0) : std::min<std::int64_t>(step, 0);
    };
    return place.first + part(place.step_x * last_x) + part(place.step_y * last_y);
  };
  if (image.dtype() != DType::u8 || image.device() != tables.taps.device() || reaches(false) < 0 ||
      reaches(true) + 3 > image.elements())
    fail("a picture of {} x {} does not fit into {} {}", s.to_width, s.to_height,
         dtype_name(image.dtype()), to_string(image.shape()));
  VFM_RUN(Touching(image), scale_picture, tables, planes, place, image);
}

Tensor picture_pixels(const Tensor& bytes) {
  if (bytes.dtype() != DType::u8) fail("pixels of {}", dtype_name(bytes.dtype()));
  const Tensor pixels(bytes.shape(), DType::f32, bytes.device());
  VFM_RUN(Touching(bytes, pixels), picture_pixels, bytes, pixels);
  return pixels;
}

}  // namespace vfm::ops
