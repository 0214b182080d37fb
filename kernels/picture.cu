// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "picture.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kMostRows = 65535;  // of a grid
constexpr int kGrey = 128 << 7;   // of chroma, in 15 bits

__global__ void __launch_bounds__(kThreads) picture_rows_kernel(const PictureRows r) {
  const PicturePlane& plane = r.planes[blockIdx.z];
  const int x = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (x >= r.columns || row >= plane.rows) return;
  const std::uint8_t* const from =
      plane.samples + row * plane.stride + std::int64_t{plane.taps.first[x]} * plane.step;
  int sum = 0;
  for (int k = 0; k < plane.taps.size; ++k)
    sum += plane.taps.weights[std::int64_t{k} * r.columns + x] * from[k * plane.step];
  plane.lines[std::int64_t{row} * r.columns + x] = static_cast<std::int16_t>(min(sum >> 7, 32767));
}

struct Sums {
  int y, u, v;
};

// What swscale does with one line, two or more, each of which it rounds in its own way.
__device__ Sums column_sums(const PictureColours& c, int x, int row) {
  const std::int64_t width = c.width;
  const std::int16_t* const y = c.lines[0] + c.luma.first[row] * width + x;
  const std::int64_t at = c.chroma.first[row] * width + x;
  const std::int16_t *const u = c.lines[1] + at, *const v = c.lines[2] + at;
  const int *const luma = c.luma.weights + row, *const chroma = c.chroma.weights + row;
  const int second = c.chroma.size == 2 ? chroma[c.height] : 0;
  const bool blends = second >= 0 && second <= 4096;
  if (c.luma.size == 1 && (c.chroma.size == 1 || (c.chroma.size == 2 && blends))) {
    if (second < 2048) return {y[0] * 4, (u[0] - kGrey) * 4, (v[0] - kGrey) * 4};
    return {y[0] * 4, (u[0] + u[width] - 2 * kGrey) * 2, (v[0] + v[width] - 2 * kGrey) * 2};
  }
  const bool two = c.luma.size == 2 && c.chroma.size == 2 && blends && luma[c.height] >= 0 &&
                   luma[c.height] <= 4096;
  const int half = two ? 0 : 1 << 9;
  Sums sums{half, half - (128 << 19), half - (128 << 19)};
  for (int k = 0; k < c.luma.size; ++k)
    sums.y += y[k * width] * luma[k * c.height];
  for (int k = 0; k < c.chroma.size; ++k) {
    const int weight = chroma[k * c.height];
    sums.u += u[k * width] * weight;
    sums.v += v[k * width] * weight;
  }
  return {sums.y >> 10, sums.u >> 10, sums.v >> 10};
}

// Products and sums that may wrap, as swscale's do.
__device__ unsigned times(int a, int b) {
  return static_cast<unsigned>(a) * static_cast<unsigned>(b);
}
__device__ std::uint8_t byte_of(unsigned colour) {
  return static_cast<std::uint8_t>(min(max(static_cast<int>(colour), 0), (1 << 30) - 1) >> 22);
}

__global__ void __launch_bounds__(kThreads) picture_colours_kernel(const PictureColours c) {
  const int x = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (x >= c.width) return;
  const Sums sums = column_sums(c, x, row);
  const unsigned y = times(sums.y - c.luma_offset, c.luma_gain) + (1u << 21);
  std::uint8_t* const to = c.rgb + x * c.step_x + row * c.step_y;
  to[0] = byte_of(y + times(sums.v, c.red_v));
  to[1] = byte_of(y + times(sums.v, c.green_v) + times(sums.u, c.green_u));
  to[2] = byte_of(y + times(sums.u, c.blue_u));
}

__global__ void __launch_bounds__(kThreads)
    picture_pixels_kernel(const std::uint8_t* bytes, float* pixels, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) pixels[i] = static_cast<float>(bytes[i]) / 127.5f - 1;
}

unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

int picture_rows(const PictureRows& r, CUstream_st* stream) {
  int rows = 0;
  for (const PicturePlane& plane : r.planes) {
    if (plane.rows < 1 || plane.rows > kMostRows || plane.taps.size < 1)
      return cudaErrorInvalidValue;
    rows = plane.rows > rows ? plane.rows : rows;
  }
  if (r.columns < 1) return cudaErrorInvalidValue;
  return launch(picture_rows_kernel, dim3(blocks(r.columns), static_cast<unsigned>(rows), 3),
                kThreads, 0, stream, r);
}

int picture_colours(const PictureColours& c, CUstream_st* stream) {
  if (c.width < 1 || c.height < 1 || c.height > kMostRows || c.luma.size < 1 || c.chroma.size < 1)
    return cudaErrorInvalidValue;
  return launch(picture_colours_kernel, dim3(blocks(c.width), static_cast<unsigned>(c.height)),
                kThreads, 0, stream, c);
}

int picture_pixels(const std::uint8_t* bytes, float* pixels, std::int64_t count,
                   CUstream_st* stream) {
  if (count < 0 || count > std::int64_t{0x7fffffff} * kThreads) return cudaErrorInvalidValue;
  return launch(picture_pixels_kernel, dim3(blocks(count)), kThreads, 0, stream, bytes, pixels,
                count);
}

}  // namespace vfm::kernels
