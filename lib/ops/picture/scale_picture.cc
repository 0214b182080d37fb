// SPDX-License-Identifier: Apache-2.0
#include "ops/picture/scale_picture.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

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

namespace vfm::ops::cpu {
namespace {

using Part = PictureParts::Part;
using Lines = std::vector<std::int16_t>;

constexpr int kGrey = 128 << 7;  // of chroma, in 15 bits

Lines lines_of(const std::uint8_t* samples, std::ptrdiff_t stride, int step, int rows,
               const Part& taps, int columns) {
  Lines lines(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      const std::uint8_t* const from = samples + y * stride + std::ptrdiff_t{taps.first[x]} * step;
      int sum = 0;
      for (int k = 0; k < taps.size; ++k)
        sum += taps.weights[std::ptrdiff_t{k} * columns + x] * from[k * step];
      lines[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) +
            static_cast<std::size_t>(x)] = static_cast<std::int16_t>(std::min(sum >> 7, 32767));
    }
  return lines;
}

struct Sums {
  int y, u, v;
};

// What swscale does with one line, two or more, each of which it rounds in its own way
// (yuv2rgb_full_1, _2 and _X of libswscale/output.c; vscale.c says which).
Sums column_sums(const std::int16_t* y, const std::int16_t* u, const std::int16_t* v, int width,
                 const Part& luma, const Part& chroma, int row, int height) {
  const std::int32_t *const ly = luma.weights + row, *const cy = chroma.weights + row;
  const int second = chroma.size == 2 ? cy[height] : 0;
  const bool blends = second >= 0 && second <= 4096;
  if (luma.size == 1 && (chroma.size == 1 || (chroma.size == 2 && blends))) {
    if (second < 2048) return {y[0] * 4, (u[0] - kGrey) * 4, (v[0] - kGrey) * 4};
    return {y[0] * 4, (u[0] + u[width] - 2 * kGrey) * 2, (v[0] + v[width] - 2 * kGrey) * 2};
  }
  const bool two =
      luma.size == 2 && chroma.size == 2 && blends && ly[height] >= 0 && ly[height] <= 4096;
  const int half = two ? 0 : 1 << 9;
  Sums sums{half, half - (128 << 19), half - (128 << 19)};
  for (std::ptrdiff_t k = 0; k < luma.size; ++k)
    sums.y += y[k * width] * ly[k * height];
  for (std::ptrdiff_t k = 0; k < chroma.size; ++k) {
    sums.u += u[k * width] * cy[k * height];
    sums.v += v[k * width] * cy[k * height];
  }
  return {sums.y >> 10, sums.u >> 10, sums.v >> 10};
}

// Products and sums that may wrap, as swscale's do.
unsigned times(int a, int b) {
  return static_cast<unsigned>(a) * static_cast<unsigned>(b);
}
std::uint8_t byte_of(unsigned colour) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(colour), 0, (1 << 30) - 1) >> 22);
}

}  // namespace

Tensor picture_taps(const std::vector<std::int32_t>& taps) {
  Tensor copy({static_cast<std::int64_t>(taps.size())}, DType::i32);
  std::memcpy(copy.raw(), taps.data(), copy.bytes());
  return copy;
}

Tensor picture_room(const Shape& shape) {
  return Tensor(shape, DType::u8);
}

void put_pictures(const Tensor& host, const Tensor& room) {
  std::memcpy(room.raw(), host.raw(), host.bytes());
}

void scale_picture(const PictureTables& tables, const PicturePlanes& planes,
                   const PicturePlace& place, const Tensor& image) {
  const PictureScale& s = tables.numbers;
  const PictureParts parts(tables);
  const int width = s.to_width, chroma_rows = (s.height + 1) / 2;
  const Lines y = lines_of(planes.luma, planes.luma_stride, 1, s.height, parts.luma_x, width);
  const Lines u = lines_of(planes.u, planes.chroma_stride, planes.chroma_step, chroma_rows,
                           parts.chroma_x, width);
  const Lines v = lines_of(planes.v, planes.chroma_stride, planes.chroma_step, chroma_rows,
                           parts.chroma_x, width);
  for (int row = 0; row < s.to_height; ++row) {
    const std::ptrdiff_t luma = std::ptrdiff_t{parts.luma_y.first[row]} * width;
    const std::ptrdiff_t chroma = std::ptrdiff_t{parts.chroma_y.first[row]} * width;
    for (int x = 0; x < width; ++x) {
      const Sums sums =
          column_sums(y.data() + luma + x, u.data() + chroma + x, v.data() + chroma + x, width,
                      parts.luma_y, parts.chroma_y, row, s.to_height);
      const unsigned bright = times(sums.y - s.luma_offset, s.luma_gain) + (1u << 21);
      std::uint8_t* const to =
          image.data<std::uint8_t>() + place.first + x * place.step_x + row * place.step_y;
      to[0] = byte_of(bright + times(sums.v, s.red_v));
      to[1] = byte_of(bright + times(sums.v, s.green_v) + times(sums.u, s.green_u));
      to[2] = byte_of(bright + times(sums.u, s.blue_u));
    }
  }
}

void picture_pixels(const Tensor& bytes, const Tensor& pixels) {
  const std::uint8_t* const from = bytes.data<std::uint8_t>();
  float* const to = pixels.data<float>();
  for (std::int64_t i = 0; i < bytes.elements(); ++i)
    to[i] = static_cast<float>(from[i]) / 127.5f - 1;
}

}  // namespace vfm::ops::cpu
