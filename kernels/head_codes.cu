// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/fp8.cuh"
#include "common/launch.cuh"
#include "common/pack.cuh"
#include "head_codes.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 16;  // elements that a thread takes at a time

// Where a thread begins in a row of its head, its first row in the item, and from one to the next.
struct Part {
  int column, row, step;
};
__device__ __forceinline__ Part part_of(int head_dim) {
  const int groups = head_dim / kEach, thread = static_cast<int>(threadIdx.x);
  return {thread % groups * kEach, thread / groups, kThreads / groups};
}

__device__ __forceinline__ std::int64_t place_of(const HeadCodes& c, int row, int column) {
  return (std::int64_t{row} * c.heads + blockIdx.y) * c.head_dim + column;
}

__device__ __forceinline__ void load_each(const __nv_bfloat16* x, float (&v)[kEach]) {
  float low[8], high[8];
  unpack(reinterpret_cast<const uint4*>(x)[0], low);
  unpack(reinterpret_cast<const uint4*>(x)[1], high);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v[i] = low[i], v[i + 8] = high[i];
}

__device__ __forceinline__ Fp8Scale scale_of(const HeadCodes& c, int sample) {
  return fp8_scale(c.largest[std::int64_t{sample} * c.heads + blockIdx.y]);
}

// A maximum has no order, so atomics make no chance here.
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const HeadCodes c, const __nv_bfloat16* x, std::uint32_t* largest) {
  const HeadRows item = c.items[blockIdx.x];
  const Part part = part_of(c.head_dim);
  unsigned most = 0;
  for (int row = part.row; row < item.count && part.row < part.step; row += part.step) {
    float v[kEach];
    load_each(x + place_of(c, item.first + row, part.column), v);
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      most = max(most, magnitude_bits(v[i]));
  }
  most = max_of_warp(most);
  if (threadIdx.x % 32 == 0)
    atomicMax(largest + std::int64_t{item.sample} * c.heads + blockIdx.y, most);
}

__global__ void __launch_bounds__(kThreads)
    parts_kernel(const std::uint32_t* largest, int parts, std::int64_t count, std::uint32_t* all) {
  const std::int64_t slot = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (slot >= count) return;
  unsigned most = 0;
  for (int part = 0; part < parts; ++part)
    most = max(most, largest[part * count + slot]);
  all[slot] = most;
}

__global__ void __launch_bounds__(kThreads)
    codes_kernel(const HeadCodes c, const __nv_bfloat16* x, std::uint8_t* codes) {
  const HeadRows item = c.items[blockIdx.x];
  const Part part = part_of(c.head_dim);
  const float inverse = scale_of(c, item.sample).inverse;
  for (int row = part.row; row < item.count && part.row < part.step; row += part.step) {
    const std::int64_t place = place_of(c, item.first + row, part.column);
    float v[kEach];
    load_each(x + place, v);
    *reinterpret_cast<uint4*>(codes + place) = quantize_16(v, inverse);
  }
}

// Of the bits of a code: an exponent of 8 bits has another middle than one of 4.
__device__ __forceinline__ float value_of_code(unsigned code) {
  const unsigned size = code & 0x7fu;
  const float value =
      size == 0x7fu ? __uint_as_float(0x7fc00000u) : __uint_as_float(size << 20) * 0x1p120f;
  return code & 0x80u ? -value : value;
}

__global__ void __launch_bounds__(kThreads)
    restore_kernel(const HeadCodes c, const std::uint8_t* codes, __nv_bfloat16* x) {
  const HeadRows item = c.items[blockIdx.x];
  const Part part = part_of(c.head_dim);
  const float scale = scale_of(c, item.sample).scale;
  for (int row = part.row; row < item.count && part.row < part.step; row += part.step) {
    const std::int64_t place = place_of(c, item.first + row, part.column);
    const uint4 words = *reinterpret_cast<const uint4*>(codes + place);
    const unsigned four[4] = {words.x, words.y, words.z, words.w};
    float low[8], high[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      low[i] = scale * value_of_code(four[i / 4] >> i % 4 * 8 & 0xffu);
      high[i] = scale * value_of_code(four[2 + i / 4] >> i % 4 * 8 & 0xffu);
    }
    reinterpret_cast<uint4*>(x + place)[0] = pack(low);
    reinterpret_cast<uint4*>(x + place)[1] = pack(high);
  }
}

bool is_valid(const HeadCodes& c, const void* a, const void* b) {
  return c.item_count >= 0 && c.heads > 0 && c.heads <= 65535 && c.head_dim > 0 &&
         c.head_dim % kEach == 0 && c.head_dim <= kThreads * kEach && c.samples >= 0 &&
         aligned_to_16(a, b);
}

template <class... Parameters, class... Arguments>
int launch_items(void (*kernel)(Parameters...), const HeadCodes& c, cudaStream_t stream,
                 Arguments... arguments) {
  const dim3 blocks(static_cast<unsigned>(c.item_count), static_cast<unsigned>(c.heads));
  return launch(kernel, blocks, kThreads, 0, stream, c, arguments...);
}

}  // namespace

int largest_of_heads(const HeadCodes& c, const void* x, std::uint32_t* largest,
                     CUstream_st* stream) {
  if (!is_valid(c, x, nullptr)) return cudaErrorInvalidValue;
  const cudaError_t status = cudaMemsetAsync(
      largest, 0, sizeof *largest * static_cast<std::size_t>(c.samples * c.heads), stream);
  if (status != cudaSuccess) return status;
  return launch_items(largest_kernel, c, stream, static_cast<const __nv_bfloat16*>(x), largest);
}

int largest_of_parts(const std::uint32_t* largest, int parts, std::int64_t count,
                     std::uint32_t* all, CUstream_st* stream) {
  if (parts <= 0 || count < 0) return cudaErrorInvalidValue;
  const dim3 blocks(static_cast<unsigned>((count + kThreads - 1) / kThreads));
  return launch(parts_kernel, blocks, kThreads, 0, stream, largest, parts, count, all);
}

int quantize_heads(const HeadCodes& c, const void* x, std::uint8_t* codes, CUstream_st* stream) {
  if (!is_valid(c, x, codes)) return cudaErrorInvalidValue;
  const cudaError_t status = fp8_code(codes_kernel);
  if (status != cudaSuccess) return status;
  return launch_items(codes_kernel, c, stream, static_cast<const __nv_bfloat16*>(x), codes);
}

int restore_heads(const HeadCodes& c, const std::uint8_t* codes, void* x, CUstream_st* stream) {
  if (!is_valid(c, codes, x)) return cudaErrorInvalidValue;
  return launch_items(restore_kernel, c, stream, codes, static_cast<__nv_bfloat16*>(x));
}

}  // namespace vfm::kernels
