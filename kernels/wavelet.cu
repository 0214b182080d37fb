// Everything here waits for memory: a pixel is read once for all rows of its group of frames, and
// a level of the wavelet once for its four bands.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "wavelet.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;

// The _rn functions are never contracted to a fused multiply-add, which the CPU does not have.
__device__ __forceinline__ float add(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ __forceinline__ float multiply(float a, float b) {
  return __fmul_rn(a, b);
}

// ---- Colour and time --------------------------------------------------------------------------

// Rec. 601 luma weights and what follows from them: Cb = (B - Y) / 1.772, Cr = (R - Y) / 1.402.
constexpr float kRed = 0.299f, kGreen = 0.587f, kBlue = 0.114f, kCb = 1.772f, kCr = 1.402f;

struct Colours {
  float v[3];
};

__device__ __forceinline__ Colours to_ycbcr(float r, float g, float b) {
  const float luma = add(add(multiply(kRed, r), multiply(kGreen, g)), multiply(kBlue, b));
  return {luma, __fdiv_rn(__fsub_rn(b, luma), kCb), __fdiv_rn(__fsub_rn(r, luma), kCr)};
}

__device__ __forceinline__ Colours to_rgb(float y, float cb, float cr) {
  const float red = add(y, multiply(kCr, cr)), blue = add(y, multiply(kCb, cb));
  const float green =
      __fdiv_rn(__fsub_rn(__fsub_rn(y, multiply(kRed, red)), multiply(kBlue, blue)), kGreen);
  return {red, green, blue};
}

// What a block works on: `kThreads` pixels of all frames of a latent frame.
struct Place {
  std::int64_t pixel, area, frame;  // frame: the latent one
  std::int64_t first, all;          // frames of the batch
  bool single;
};

__device__ __forceinline__ Place place_of(const WaveletBatch& b) {
  const std::int64_t area = std::int64_t{b.height} * b.width;
  const std::int64_t blocks = (area + kThreads - 1) / kThreads;
  const std::int64_t frame = blockIdx.x / blocks;
  const bool single = b.single && frame == 0;
  const std::int64_t less = b.single ? b.time - 1 : 0;  // frames that the first group lacks
  return {blockIdx.x % blocks * kThreads + threadIdx.x,
          area,
          frame,
          single ? 0 : frame * b.time - less,
          b.frames * b.time - less,
          single};
}

// The matrix of a single frame is 1 in the corner and 0 elsewhere.
template <int kTime>
__device__ __forceinline__ float weight(const WaveletBatch& b, bool single, int row, int column) {
  return single ? (row + column == 0 ? 1.f : 0.f) : b.matrix[row * kTime + column];
}

template <int kTime>
__global__ void __launch_bounds__(kThreads)
    split_kernel(const WaveletBatch b, const float* pixels, float* planes) {
  const Place p = place_of(b);
  if (p.pixel >= p.area) return;
  float sums[3][kTime] = {};
#pragma unroll
  for (int f = 0; f < kTime; ++f) {
    if (p.single && f > 0) break;
    const float* const from = pixels + (p.first + f) * p.area + p.pixel;
    const Colours c = to_ycbcr(from[0], from[p.all * p.area], from[2 * p.all * p.area]);
#pragma unroll
    for (int row = 0; row < kTime; ++row) {
      const float w = weight<kTime>(b, p.single, row, f);
#pragma unroll
      for (int colour = 0; colour < 3; ++colour)
        sums[colour][row] = add(sums[colour][row], multiply(w, c.v[colour]));
    }
  }
  int there = 0;
  for (int bit = 0; bit < 3 * kTime; ++bit)
    there += static_cast<int>(b.rows >> bit & 1);
  float* to = planes + p.frame * there * p.area + p.pixel;
#pragma unroll
  for (int colour = 0; colour < 3; ++colour)
#pragma unroll
    for (int row = 0; row < kTime; ++row)
      if (b.rows >> (colour * kTime + row) & 1) {
        *to = sums[colour][row];
        to += p.area;
      }
}

template <int kTime>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(const WaveletBatch b, const float* planes, float* pixels) {
  const Place p = place_of(b);
  if (p.pixel >= p.area) return;
  int there = 0;
  for (int bit = 0; bit < 3 * kTime; ++bit)
    there += static_cast<int>(b.rows >> bit & 1);
  const float* from = planes + p.frame * there * p.area + p.pixel;
  float values[3][kTime] = {};
#pragma unroll
  for (int colour = 0; colour < 3; ++colour)
#pragma unroll
    for (int row = 0; row < kTime; ++row)
      if (b.rows >> (colour * kTime + row) & 1) {
        values[colour][row] = *from;
        from += p.area;
      }
#pragma unroll
  for (int f = 0; f < kTime; ++f) {
    if (p.single && f > 0) break;
    float sums[3] = {};
#pragma unroll
    for (int row = 0; row < kTime; ++row) {
      const float w = weight<kTime>(b, p.single, f, row);
#pragma unroll
      for (int colour = 0; colour < 3; ++colour)
        sums[colour] = add(sums[colour], multiply(w, values[colour][row]));
    }
    const Colours c = to_rgb(sums[0], sums[1], sums[2]);
    float* const to = pixels + (p.first + f) * p.area + p.pixel;
#pragma unroll
    for (int colour = 0; colour < 3; ++colour)
      to[colour * p.all * p.area] = c.v[colour];
  }
}

// ---- Space ------------------------------------------------------------------------------------

// ITU-T T.800, table F.4.
constexpr float kAlpha = -1.586134342059924f, kBeta = -0.052980118572961f;
constexpr float kGamma = 0.882911075530934f, kDelta = 0.443506852043971f;
constexpr float kGain = 1.230174104914001f;

// A block makes, or undoes, the bands of kRows x kColumns samples. It reads kHalo more on each
// side, as far as four lifting steps reach, and lifts these too: a step that two blocks compute is
// the same number in both. Beyond the border stand mirror images, which lifting keeps mirror
// images; so the border needs no steps of its own.
constexpr int kRows = 32, kColumns = 64, kHalo = 4;
constexpr int kTileRows = kRows + 2 * kHalo, kTileColumns = kColumns + 2 * kHalo;
using Tile = float[kTileRows][kTileColumns];

__device__ __forceinline__ int mirrored(int i, int n) {
  if (i < 0) i = -i;
  if (i < n) return i;
  i %= 2 * (n - 1);
  return i < n ? i : 2 * (n - 1) - i;
}

__device__ __forceinline__ float lifted(float target, float a, float b, float c) {
  return add(target, multiply(c, add(a, b)));
}

// target += c * (its two neighbours) for every second row from kFirst to kLast, or column.
template <int kFirst, int kLast>
__device__ __forceinline__ void lift_rows(Tile& tile, float c) {
  constexpr int kCount = ((kLast - kFirst) / 2 + 1) * kTileColumns;
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kThreads) {
    const int y = kFirst + i / kTileColumns * 2, x = i % kTileColumns;
    tile[y][x] = lifted(tile[y][x], tile[y - 1][x], tile[y + 1][x], c);
  }
  __syncthreads();
}
template <int kFirst, int kLast>
__device__ __forceinline__ void lift_columns(Tile& tile, float c) {
  constexpr int kAcross = (kLast - kFirst) / 2 + 1;
  for (int i = static_cast<int>(threadIdx.x); i < kAcross * kTileRows; i += kThreads) {
    const int y = i / kAcross, x = kFirst + i % kAcross * 2;
    tile[y][x] = lifted(tile[y][x], tile[y][x - 1], tile[y][x + 1], c);
  }
  __syncthreads();
}

// Even rows (columns) times `even`, odd ones times `odd`.
template <bool kOfRows>
__device__ __forceinline__ void scale(Tile& tile, float even, float odd) {
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileColumns; i += kThreads) {
    const int y = i / kTileColumns, x = i % kTileColumns;
    tile[y][x] = multiply(tile[y][x], (kOfRows ? y : x) % 2 == 0 ? even : odd);
  }
  __syncthreads();
}

// Which samples of which plane a block works on.
struct Part {
  int height, width;    // of the samples
  int y, x;             // the first of the block, even
  std::int64_t offset;  // of the plane
};

__device__ __forceinline__ Part part_of(const WaveletLevel& l) {
  const int height = l.height >> (l.level - 1), width = l.width >> (l.level - 1);
  const unsigned across = static_cast<unsigned>((width + kColumns - 1) / kColumns);
  const unsigned down = static_cast<unsigned>((height + kRows - 1) / kRows);
  const unsigned tile = blockIdx.x % (across * down);
  return {height, width, static_cast<int>(tile / across) * kRows,
          static_cast<int>(tile % across) * kColumns,
          std::int64_t{blockIdx.x / (across * down)} * l.height * l.width};
}

__global__ void __launch_bounds__(kThreads)
    analyse_kernel(const WaveletLevel l, const float* from, float* to) {
  __shared__ Tile tile;
  const Part p = part_of(l);
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileColumns; i += kThreads) {
    const int y = i / kTileColumns, x = i % kTileColumns;
    tile[y][x] = from[p.offset + std::int64_t{mirrored(p.y + y - kHalo, p.height)} * l.width +
                      mirrored(p.x + x - kHalo, p.width)];
  }
  __syncthreads();
  lift_rows<1, kRows + 5>(tile, kAlpha);
  lift_rows<2, kRows + 4>(tile, kBeta);
  lift_rows<3, kRows + 3>(tile, kGamma);
  lift_rows<4, kRows + 2>(tile, kDelta);
  scale<true>(tile, 1 / kGain, kGain / 2);
  lift_columns<1, kColumns + 5>(tile, kAlpha);
  lift_columns<2, kColumns + 4>(tile, kBeta);
  lift_columns<3, kColumns + 3>(tile, kGamma);
  lift_columns<4, kColumns + 2>(tile, kDelta);
  // Half a row of the tile, one band's, after the other: neighbouring threads write neighbours.
  constexpr int kHalf = kColumns / 2;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    const int y = i / kColumns, high_x = i / kHalf % 2, x = i % kHalf * 2 + high_x, high_y = y % 2;
    if (p.y + y >= p.height || p.x + x >= p.width || (!l.details && high_x + high_y > 0)) continue;
    const int row = (high_y ? p.height / 2 : 0) + (p.y + y) / 2;
    const int column = (high_x ? p.width / 2 : 0) + (p.x + x) / 2;
    to[p.offset + std::int64_t{row} * l.width + column] =
        multiply(tile[kHalo + y][kHalo + x], high_x ? kGain / 2 : 1 / kGain);
  }
}

__global__ void __launch_bounds__(kThreads)
    synthesise_kernel(const WaveletLevel l, const float* from, float* to) {
  __shared__ Tile tile;
  const Part p = part_of(l);
  constexpr int kHalf = kTileColumns / 2;
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileColumns; i += kThreads) {
    const int y = i / kTileColumns, x = i % kHalf * 2 + i / kHalf % 2;
    const int sample_y = mirrored(p.y + y - kHalo, p.height);
    const int sample_x = mirrored(p.x + x - kHalo, p.width);
    const bool low = sample_y % 2 == 0 && sample_x % 2 == 0;
    const int row = (sample_y % 2 ? p.height / 2 : 0) + sample_y / 2;
    const int column = (sample_x % 2 ? p.width / 2 : 0) + sample_x / 2;
    tile[y][x] = low || l.details ? from[p.offset + std::int64_t{row} * l.width + column] : 0.f;
  }
  __syncthreads();
  scale<false>(tile, kGain, 2 / kGain);
  lift_columns<2, kColumns + 6>(tile, -kDelta);
  lift_columns<3, kColumns + 5>(tile, -kGamma);
  lift_columns<4, kColumns + 4>(tile, -kBeta);
  lift_columns<5, kColumns + 3>(tile, -kAlpha);
  scale<true>(tile, kGain, 2 / kGain);
  lift_rows<2, kRows + 6>(tile, -kDelta);
  lift_rows<3, kRows + 5>(tile, -kGamma);
  lift_rows<4, kRows + 4>(tile, -kBeta);
  lift_rows<5, kRows + 3>(tile, -kAlpha);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    const int y = i / kColumns, x = i % kColumns;
    if (p.y + y < p.height && p.x + x < p.width)
      to[p.offset + std::int64_t{p.y + y} * l.width + p.x + x] = tile[kHalo + y][kHalo + x];
  }
}

// ---- Latents ----------------------------------------------------------------------------------

template <bool kGather>
__global__ void __launch_bounds__(kThreads)
    channel_kernel(const WaveletChannels c, float* even, float* odd, float* latents) {
  const int h = c.height >> c.levels, w = c.width >> c.levels;
  const std::int64_t area = std::int64_t{h} * w;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= c.channels * c.frames * area) return;
  const std::int64_t frame = i / area % c.frames, channel = i / area / c.frames, place = i % area;
  const WaveletBand band = c.bands[channel];
  float* const plane = (band.level % 2 == 0 ? even : odd) +
                       (frame * c.planes + band.plane) * c.height * std::int64_t{c.width};
  float& coefficient = plane[band.offset + (place / w * c.width + place % w) * band.step];
  float& latent = latents[(channel * c.all + c.first + frame) * area + place];
  if constexpr (kGather) {
    latent = coefficient;
  } else {
    coefficient = latent;
  }
}

constexpr std::int64_t kMostBlocks = 0x7fffffff;

// Blocks of `planes` planes that each need `each`; negative if no grid has so many.
std::int64_t blocks_of(std::int64_t planes, std::int64_t each) {
  if (planes < 0 || each < 0 || (each > 0 && planes > kMostBlocks / each)) return -1;
  return planes * each;
}

template <class Kernel, class... Arguments>
int launch_blocks(Kernel kernel, std::int64_t blocks, cudaStream_t stream, Arguments... arguments) {
  if (blocks < 0 || blocks > kMostBlocks) return cudaErrorInvalidValue;
  return launch(kernel, dim3(static_cast<unsigned>(blocks)), kThreads, 0, stream, arguments...);
}

std::int64_t blocks_of(const WaveletBatch& b) {
  if (b.height < 0 || b.width < 0 || b.rows >> (3 * b.time) != 0) return -1;
  const std::int64_t area = std::int64_t{b.height} * b.width;
  return blocks_of(b.frames, (area + kThreads - 1) / kThreads);
}

bool divides(int levels, int height, int width) {
  if (levels < 0 || levels > 16 || height < 0 || width < 0) return false;
  return height % (1 << levels) == 0 && width % (1 << levels) == 0;
}

std::int64_t blocks_of(const WaveletLevel& l) {
  if (l.level < 1 || !divides(l.level, l.height, l.width)) return -1;
  const std::int64_t down = ((l.height >> (l.level - 1)) + kRows - 1) / kRows;
  const std::int64_t across = ((l.width >> (l.level - 1)) + kColumns - 1) / kColumns;
  return blocks_of(l.planes, down * across);
}

template <bool kGather>
int move(const WaveletChannels& c, float* even, float* odd, float* latents, cudaStream_t stream) {
  if (!divides(c.levels, c.height, c.width) || c.channels < 0 || c.frames < 0 || c.first < 0 ||
      c.all - c.first < c.frames)
    return cudaErrorInvalidValue;
  const std::int64_t area = std::int64_t{c.height >> c.levels} * (c.width >> c.levels);
  const std::int64_t count = area > 0 ? blocks_of(c.frames, area) : 0;
  if (count < 0 || (c.channels > 0 && count > kMostBlocks * kThreads / c.channels))
    return cudaErrorInvalidValue;
  return launch_blocks(channel_kernel<kGather>, (count * c.channels + kThreads - 1) / kThreads,
                       stream, c, even, odd, latents);
}

using BatchKernel = void (*)(WaveletBatch, const float*, float*);

// kernels[i] is the one for 2^i pixel frames of a latent one.
int launch_for_time(const BatchKernel (&kernels)[5], const WaveletBatch& b, const float* from,
                    float* to, CUstream_st* stream) {
  for (int i = 0; i < 5; ++i)
    if (b.time == 1 << i) return launch_blocks(kernels[i], blocks_of(b), stream, b, from, to);
  return cudaErrorInvalidValue;
}

}  // namespace

int wavelet_split(const WaveletBatch& b, const float* pixels, float* planes, CUstream_st* stream) {
  return launch_for_time(
      {split_kernel<1>, split_kernel<2>, split_kernel<4>, split_kernel<8>, split_kernel<16>}, b,
      pixels, planes, stream);
}

int wavelet_merge(const WaveletBatch& b, const float* planes, float* pixels, CUstream_st* stream) {
  return launch_for_time(
      {merge_kernel<1>, merge_kernel<2>, merge_kernel<4>, merge_kernel<8>, merge_kernel<16>}, b,
      planes, pixels, stream);
}

int wavelet_analyse(const WaveletLevel& l, const float* from, float* to, CUstream_st* stream) {
  return launch_blocks(analyse_kernel, blocks_of(l), stream, l, from, to);
}

int wavelet_synthesise(const WaveletLevel& l, const float* from, float* to, CUstream_st* stream) {
  return launch_blocks(synthesise_kernel, blocks_of(l), stream, l, from, to);
}

int wavelet_gather(const WaveletChannels& c, const float* even, const float* odd, float* latents,
                   CUstream_st* stream) {
  // One kernel for both directions; this one only reads the planes.
  return move<true>(c, const_cast<float*>(even), const_cast<float*>(odd), latents, stream);
}

int wavelet_scatter(const WaveletChannels& c, const float* latents, float* even, float* odd,
                    CUstream_st* stream) {
  return move<false>(c, even, odd, const_cast<float*>(latents), stream);
}

}  // namespace vfm::kernels
