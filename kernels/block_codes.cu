// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "block_codes.h"
#include "common/launch.cuh"
#include "common/reduce.cuh"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// The number in the part of element `at` of the whole tensor, or -1.
__device__ __forceinline__ std::int64_t place_of(const CodedPart& part, std::int64_t at) {
  const std::int64_t from = at - part.first;
  if (from < 0) return -1;
  const std::int64_t run = from / part.stride, inside = from - run * part.stride;
  if (inside >= part.length) return -1;
  const std::int64_t place = run * part.length + inside - part.begin;
  return place < part.count ? place : -1;  // below 0 it is none either
}

// The block of this warp, or end_block if there is none left.
__device__ __forceinline__ std::int64_t block_of(const CodedPart& part) {
  return part.first_block + std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
}

__device__ __forceinline__ void keep_table(const CodeTable& table, float* kept) {
  kept[threadIdx.x] = table.v[threadIdx.x];
  __syncthreads();
}

// Calls act(place) for what this lane has of the elements of the warp's block.
template <class Act>
__device__ __forceinline__ void each_of_block(const CodedPart& part, std::int64_t block, Act act) {
#pragma unroll
  for (int i = 0; i < kCodedBlock; i += 32) {
    const std::int64_t place = place_of(part, block * kCodedBlock + i + threadIdx.x % 32);
    if (place >= 0) act(place);
  }
}

__global__ void __launch_bounds__(kThreads)
    decode_kernel(const std::uint8_t* codes, const float* scales, const CodeTable table,
                  const CodedPart part, float* numbers) {
  __shared__ float kept[256];
  keep_table(table, kept);
  const std::int64_t block = block_of(part);
  if (block >= part.end_block) return;
  const float scale = scales[block];
  each_of_block(part, block, [&](std::int64_t i) { numbers[i] = kept[codes[i]] * scale; });
}

__global__ void __launch_bounds__(kThreads)
    scales_kernel(const float* numbers, const CodedPart part, float* scales) {
  const std::int64_t block = block_of(part);
  if (block >= part.end_block) return;
  float most = -1;
  each_of_block(part, block, [&](std::int64_t i) { most = fmaxf(most, fabsf(numbers[i])); });
  most = warp_max(most);
  if (threadIdx.x % 32 == 0 && most >= 0) scales[block] = most;
}

__global__ void __launch_bounds__(kThreads)
    encode_kernel(const float* numbers, const float* scales, const CodeTable table,
                  const CodedPart part, std::uint8_t* codes) {
  __shared__ float kept[256];
  keep_table(table, kept);
  const std::int64_t block = block_of(part);
  if (block >= part.end_block) return;
  const float scale = scales[block];
  each_of_block(part, block, [&](std::int64_t i) {
    const float x = scale > 0 ? numbers[i] / scale : 0.f;
    int code = 0;
#pragma unroll
    for (int step = 128; step > 0; step /= 2)
      code += kept[code + step - 1] < x ? step : 0;
    codes[i] = static_cast<std::uint8_t>(code);
  });
}

__global__ void __launch_bounds__(kThreads)
    greater_kernel(float* target, const float* other, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) target[i] = fmaxf(target[i], other[i]);
}

template <class... Parameters, class... Arguments>
int launch_blocks(void (*kernel)(Parameters...), const CodedPart& part, cudaStream_t stream,
                  const Arguments&... arguments) {
  const std::int64_t blocks = part.end_block - part.first_block,
                     grid = (blocks + kWarps - 1) / kWarps;
  if (blocks < 0 || grid > 0x7fffffff) return cudaErrorInvalidValue;
  return launch(kernel, dim3(static_cast<unsigned>(grid)), kThreads, 0, stream, arguments...);
}

}  // namespace

int decode_blocks(const std::uint8_t* codes, const float* scales, const CodeTable& numbers_of,
                  const CodedPart& part, float* numbers, CUstream_st* stream) {
  return launch_blocks(decode_kernel, part, stream, codes, scales, numbers_of, part, numbers);
}

int scales_of_blocks(const float* numbers, const CodedPart& part, float* scales,
                     CUstream_st* stream) {
  return launch_blocks(scales_kernel, part, stream, numbers, part, scales);
}

int encode_blocks(const float* numbers, const float* scales, const CodeTable& limits,
                  const CodedPart& part, std::uint8_t* codes, CUstream_st* stream) {
  return launch_blocks(encode_kernel, part, stream, numbers, scales, limits, part, codes);
}

int greater_in_place(float* target, const float* other, std::int64_t n, CUstream_st* stream) {
  const std::int64_t grid = (n + kThreads - 1) / kThreads;
  if (n < 0 || grid > 0x7fffffff) return cudaErrorInvalidValue;
  return launch(greater_kernel, dim3(static_cast<unsigned>(grid)), kThreads, 0, stream, target,
                other, n);
}

}  // namespace vfm::kernels
