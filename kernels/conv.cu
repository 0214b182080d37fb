// Convolutions on plain arithmetic, for f32 and for what tensor cores do not take; the order of
// weights; sums over chunks and rows.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "common/conv_gather.cuh"
#include "common/launch.cuh"
#include "conv.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kTile = 64;  // rows and columns of a block's part of the product
constexpr int kStep = 16;  // of what is summed over
constexpr int kOwn = 4;    // rows and columns of a thread

__device__ __forceinline__ float read(const float* p) {
  return *p;
}
__device__ __forceinline__ float read(const Bf16* p) {
  return __bfloat162float(*p);
}
__device__ __forceinline__ void write(float* p, float v) {
  *p = v;
}
__device__ __forceinline__ void write(Bf16* p, float v) {
  *p = __float2bfloat16_rn(v);
}

struct Tiles {
  float left[kStep][kTile + 4], right[kStep][kTile + 4];  // + 4: columns in different banks
};

// This thread's rows 4 (thread / 16) + i and columns 4 (thread % 16) + j.
__device__ __forceinline__ void multiply(float (&sums)[kOwn][kOwn], const Tiles& tiles) {
  const int row = static_cast<int>(threadIdx.x) / 16 * kOwn;
  const int column = static_cast<int>(threadIdx.x) % 16 * kOwn;
#pragma unroll
  for (int k = 0; k < kStep; ++k)
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
#pragma unroll
      for (int j = 0; j < kOwn; ++j)
        sums[i][j] += tiles.left[k][row + i] * tiles.right[k][column + j];
}

template <class T, bool kFrames>
__global__ void __launch_bounds__(kThreads) product_kernel(const ConvProduct c) {
  __shared__ Tiles tiles;
  const std::int64_t rows = c.gather.rows();
  const unsigned across = (static_cast<unsigned>(c.columns) + kTile - 1) / kTile;
  const std::int64_t first_row = std::int64_t{blockIdx.x / across} * kTile;
  const int first_column = static_cast<int>(blockIdx.x % across) * kTile;
  const int depth = c.gather.depth(), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kStep, line = thread / kStep;  // what it copies: place in a step, row
  ConvPixel pixels[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pixels[i] = conv_pixel<kFrames>(c.gather, first_row + line + 16 * i, rows);
  float sums[kOwn][kOwn] = {};
  for (int step = 0; step < depth; step += kStep) {
    const int k = step + lane;
    const ConvTap tap = conv_tap<kFrames>(c.gather, k);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = k < depth ? conv_element<kFrames>(c.gather, pixels[i], tap) : -1;
      const int column = first_column + line + 16 * i;
      tiles.left[lane][line + 16 * i] = at < 0 ? 0.f : read(static_cast<const T*>(c.source) + at);
      tiles.right[lane][line + 16 * i] =
          k < depth && column < c.columns
              ? read(static_cast<const T*>(c.weights) + std::int64_t{column} * depth + k)
              : 0.f;
    }
    __syncthreads();
    multiply(sums, tiles);
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) {
      const std::int64_t row = first_row + thread / 16 * kOwn + i;
      const int column = first_column + thread % 16 * kOwn + j;
      if (row >= rows || column >= c.columns) continue;
      const std::int64_t at = row * c.columns + column;
      float v = sums[i][j];
      if (c.bias) v += c.bias[column];
      if (c.residual) v += read(static_cast<const T*>(c.residual) + at);
      write(static_cast<T*>(c.y) + at, v);
    }
}

template <class T, bool kFrames>
__global__ void __launch_bounds__(kThreads) weights_kernel(const ConvWeights c) {
  __shared__ Tiles tiles;
  const int depth = c.gather.depth(), thread = static_cast<int>(threadIdx.x);
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int first_depth = static_cast<int>(blockIdx.y) * kTile;
  const std::int64_t begin = (c.first_chunk + blockIdx.z) * kConvChunk;
  const std::int64_t end = min(begin + kConvChunk, c.gather.rows());
  const int lane = thread % kTile, line = thread / kTile;  // what it copies: column, pixel
  const int column = first_column + lane, k = first_depth + lane;
  const ConvTap tap = conv_tap<kFrames>(c.gather, k);
  float sums[kOwn][kOwn] = {};
  for (std::int64_t step = begin; step < end; step += kStep) {
#pragma unroll
    for (int i = 0; i < kStep; i += 4) {
      const std::int64_t row = step + line + i;
      const std::int64_t at =
          k < depth ? conv_element<kFrames>(c.gather, conv_pixel<kFrames>(c.gather, row, end), tap)
                    : -1;
      tiles.left[line + i][lane] =
          row < end && column < c.columns
              ? read(static_cast<const T*>(c.dy) + row * c.columns + column)
              : 0.f;
      tiles.right[line + i][lane] = at < 0 ? 0.f : read(static_cast<const T*>(c.source) + at);
    }
    __syncthreads();
    multiply(sums, tiles);
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) {
      const int row = first_column + thread / 16 * kOwn + i;
      const int at = first_depth + thread % 16 * kOwn + j;
      if (row < c.columns && at < depth)
        c.partial[(std::int64_t{blockIdx.z} * c.columns + row) * depth + at] = sums[i][j];
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    arrange_kernel(const T* w, T* arranged, int out, int in, int taps, bool back) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= std::int64_t{out} * in * taps) return;
  const int inner = back ? out : in;
  const int c = static_cast<int>(i % inner), tap = static_cast<int>(i / inner % taps);
  const int n = static_cast<int>(i / inner / taps);
  const int from_out = back ? c : n, from_in = back ? n : c;
  arranged[i] = w[(std::int64_t{from_out} * in + from_in) * taps + tap];
}

__global__ void __launch_bounds__(kThreads)
    add_weights_kernel(const float* partial, int chunks, float* dw, int columns, int channels,
                       int taps) {
  const std::int64_t size = std::int64_t{columns} * channels * taps;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const int c = static_cast<int>(i % channels), tap = static_cast<int>(i / channels % taps);
  const std::int64_t n = i / channels / taps;
  float sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk)
    sum += partial[chunk * size + i];
  dw[(n * channels + c) * taps + tap] += sum;
}

// A block sums its part of the rows over 32 columns, 8 rows at a time.
template <class T>
__global__ void __launch_bounds__(kThreads)
    bias_kernel(const T* dy, std::int64_t rows, int columns, float* partial) {
  __shared__ float shared[8][33];
  const int lane = static_cast<int>(threadIdx.x % 32), line = static_cast<int>(threadIdx.x / 32);
  const int column = static_cast<int>(blockIdx.y) * 32 + lane;
  const std::int64_t begin = rows * blockIdx.x / gridDim.x;
  const std::int64_t end = rows * (blockIdx.x + 1) / gridDim.x;
  float sum = 0;
  if (column < columns)
    for (std::int64_t row = begin + line; row < end; row += 8)
      sum += read(dy + row * columns + column);
  shared[line][lane] = sum;
  __syncthreads();
  if (line != 0 || column >= columns) return;
  for (int i = 1; i < 8; ++i)
    sum += shared[i][lane];
  partial[std::int64_t{blockIdx.x} * columns + column] = sum;
}

__global__ void __launch_bounds__(kThreads)
    add_bias_kernel(const float* partial, int parts, int columns, float* dbias) {
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (column >= columns) return;
  float sum = 0;
#pragma unroll 8
  for (int i = 0; i < parts; ++i)
    sum += partial[i * columns + column];
  dbias[column] += sum;
}

unsigned blocks_of(std::int64_t n, std::int64_t size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

bool valid(const ConvGather& g, int columns) {
  constexpr std::int64_t kMost = 0x7fffffff;
  if (g.frames <= 0 || g.out_frames <= 0 || g.kernel_frames <= 0 || g.stride_t <= 0) return false;
  const std::int64_t image = std::int64_t{g.height} * g.width,
                     result = std::int64_t{g.out_height} * g.out_width;
  const std::int64_t depth =
      std::int64_t{g.kernel_height} * g.kernel_width * g.kernel_frames * g.channels;
  return g.images >= 0 && g.height > 0 && g.width > 0 && g.channels > 0 && g.out_height > 0 &&
         g.out_width > 0 && g.kernel_height > 0 && g.kernel_width > 0 && g.stride_y > 0 &&
         g.stride_x > 0 && columns > 0 && depth < kMost - 64 && depth * columns <= kMost &&
         image <= kMost && image * g.frames <= kMost && result <= kMost &&
         result * g.out_frames <= kMost && g.images <= kMost;
}

}  // namespace

int conv_product(const ConvProduct& call, CUstream_st* stream) {
  if (call.gather.images == 0) return cudaSuccess;
  if (!valid(call.gather, call.columns)) return cudaErrorInvalidValue;
  if (conv_on_tensor_cores(call.gather, call.type, call.columns, call.source, call.weights,
                           call.residual, call.y) &&
      aligned_to_16(call.bias))
    return conv_product_tensor(call, stream);
  const std::int64_t tiles =
      (call.gather.rows() + kTile - 1) / kTile * ((call.columns + kTile - 1) / kTile);
  if (tiles > 0x7fffffff) return cudaErrorInvalidValue;
  const auto run = [&](auto kernel) {
    return launch(kernel, dim3(static_cast<unsigned>(tiles)), kThreads, 0, stream, call);
  };
  if (conv_frames(call.gather))
    return run(call.type == Type::bf16 ? product_kernel<Bf16, true> : product_kernel<float, true>);
  return run(call.type == Type::bf16 ? product_kernel<Bf16, false> : product_kernel<float, false>);
}

int conv_arrange(Type type, const void* w, void* arranged, int out, int in, int taps, bool back,
                 CUstream_st* stream) {
  const std::int64_t size = std::int64_t{out} * in * taps;
  if (out < 0 || in < 0 || taps < 0 || size > 0x7fffffff) return cudaErrorInvalidValue;
  const auto run = [&]<class T>(T) {
    return launch(arrange_kernel<T>, dim3(blocks_of(size, kThreads)), kThreads, 0, stream,
                  static_cast<const T*>(w), static_cast<T*>(arranged), out, in, taps, back);
  };
  return type == Type::bf16 ? run(Bf16{}) : run(float{});
}

int conv_weights(const ConvWeights& call, CUstream_st* stream) {
  if (call.gather.images == 0 || call.chunks == 0) return cudaSuccess;
  if (!valid(call.gather, call.columns) || call.gather.back || call.chunks < 0 ||
      call.chunks > 65535)
    return cudaErrorInvalidValue;
  if (conv_on_tensor_cores(call.gather, call.type, call.columns, call.source, call.dy, call.partial,
                           nullptr))
    return conv_weights_tensor(call, stream);
  const dim3 blocks(blocks_of(call.columns, kTile), blocks_of(call.gather.depth(), kTile),
                    static_cast<unsigned>(call.chunks));
  const auto run = [&](auto kernel) { return launch(kernel, blocks, kThreads, 0, stream, call); };
  if (conv_frames(call.gather))
    return run(call.type == Type::bf16 ? weights_kernel<Bf16, true> : weights_kernel<float, true>);
  return run(call.type == Type::bf16 ? weights_kernel<Bf16, false> : weights_kernel<float, false>);
}

int conv_add_weights(const float* partial, int chunks, float* dw, int columns, int channels,
                     int taps, CUstream_st* stream) {
  const std::int64_t size = std::int64_t{columns} * channels * taps;
  if (columns < 0 || channels < 0 || taps < 0 || size > 0x7fffffff) return cudaErrorInvalidValue;
  return launch(add_weights_kernel, dim3(blocks_of(size, kThreads)), kThreads, 0, stream, partial,
                chunks, dw, columns, channels, taps);
}

int conv_bias(Type type, const void* dy, std::int64_t rows, int columns, float* partial,
              float* dbias, CUstream_st* stream) {
  if (rows < 0 || columns < 0 || columns > 65535 * 32) return cudaErrorInvalidValue;
  const std::int64_t parts = std::clamp<std::int64_t>(rows / 64, 1, kConvBiasParts);
  const dim3 blocks(static_cast<unsigned>(parts), blocks_of(columns, 32));
  const int status = type == Type::bf16
                         ? launch(bias_kernel<Bf16>, blocks, kThreads, 0, stream,
                                  static_cast<const Bf16*>(dy), rows, columns, partial)
                         : launch(bias_kernel<float>, blocks, kThreads, 0, stream,
                                  static_cast<const float*>(dy), rows, columns, partial);
  if (status != cudaSuccess) return status;
  return launch(add_bias_kernel, dim3(blocks_of(columns, kThreads)), kThreads, 0, stream, partial,
                static_cast<int>(parts), columns, dbias);
}

}  // namespace vfm::kernels
