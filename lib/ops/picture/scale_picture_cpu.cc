// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/picture/scale_picture_kernels.h"

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
