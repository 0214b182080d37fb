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
constexpr int kEach = 16;   // elements that a thread takes at a time
constexpr int kRows = 256;  // of a block, and one head
constexpr int kWarp = 32;

// The elements of a thread: those from `column` of its head on, in every step-th row up to `end`.
struct Part {
  std::int64_t row, end;
  int column, step;
};
__device__ __forceinline__ Part part_of(const HeadCodes& c) {
  const int groups = c.head_dim / kEach, thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * kRows;
  const int step = kThreads / groups;
  if (thread / groups >= step) return {0, 0, 0, step};
  return {first + thread / groups, min(first + kRows, c.rows), thread % groups * kEach, step};
}

__device__ __forceinline__ std::int64_t place_of(const HeadCodes& c, std::int64_t row, int column) {
  return (row * gridDim.y + blockIdx.y) * c.head_dim + column;
}

/// 0 for a head of queries, 1 of keys, 2 of values.
__device__ __forceinline__ int kind_of(const HeadCodes& c) {
  const int head = static_cast<int>(blockIdx.y);
  return head < c.queries ? 0 : head < c.queries + c.keys ? 1 : 2;
}

__device__ __forceinline__ void load_each(const __nv_bfloat16* x, float (&v)[kEach]) {
  float low[8], high[8];
  unpack(reinterpret_cast<const uint4*>(x)[0], low);
  unpack(reinterpret_cast<const uint4*>(x)[1], high);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v[i] = low[i], v[i + 8] = high[i];
}

// A maximum has no order, so atomics make no chance here.
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const HeadCodes c, const __nv_bfloat16* x, std::uint32_t* largest) {
  __shared__ unsigned of_warps[kThreads / 32];
  const Part part = part_of(c);
  unsigned most = 0;
  for (std::int64_t row = part.row; row < part.end; row += part.step) {
    float v[kEach];
    load_each(x + place_of(c, row, part.column), v);
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      most = max(most, magnitude_bits(v[i]));
  }
  most = max_of_block<kThreads>(most, of_warps);
  if (threadIdx.x == 0) atomicMax(largest + kind_of(c), most);
}

__global__ void __launch_bounds__(kWarp)
    parts_kernel(const std::uint32_t* largest, int parts, std::uint32_t* all) {
  if (threadIdx.x >= 3) return;
  unsigned most = 0;
  for (int part = 0; part < parts; ++part)
    most = max(most, largest[3 * part + threadIdx.x]);
  all[threadIdx.x] = most;
}

__global__ void __launch_bounds__(kThreads)
    codes_kernel(const HeadCodes c, const __nv_bfloat16* x, std::uint8_t* codes) {
  const Part part = part_of(c);
  const float inverse = fp8_scale(c.largest[kind_of(c)]).inverse;
  for (std::int64_t row = part.row; row < part.end; row += part.step) {
    const std::int64_t place = place_of(c, row, part.column);
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
  const Part part = part_of(c);
  const float scale = fp8_scale(c.largest[kind_of(c)]).scale;
  for (std::int64_t row = part.row; row < part.end; row += part.step) {
    const std::int64_t place = place_of(c, row, part.column);
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

__global__ void __launch_bounds__(kWarp)
    scales_kernel(const std::uint32_t* largest, float* scales) {
  if (threadIdx.x >= 3) return;
  const Fp8Scale by = fp8_scale(largest[threadIdx.x]);
  scales[threadIdx.x] = by.scale;
  if (threadIdx.x == 2) scales[3] = by.inverse;
}

std::int64_t heads_of(const HeadCodes& c) {
  return std::int64_t{c.queries} + c.keys + c.values;
}

bool is_valid(const HeadCodes& c, const void* a, const void* b) {
  return c.rows >= 0 && c.queries >= 0 && c.keys >= 0 && c.values >= 0 && heads_of(c) <= 65535 &&
         c.head_dim > 0 && c.head_dim % kEach == 0 && c.head_dim <= kThreads * kEach &&
         aligned_to_16(a, b);
}

template <class... Parameters, class... Arguments>
int launch_heads(void (*kernel)(Parameters...), const HeadCodes& c, cudaStream_t stream,
                 Arguments... arguments) {
  const dim3 blocks(static_cast<unsigned>((c.rows + kRows - 1) / kRows),
                    static_cast<unsigned>(heads_of(c)));
  return launch(kernel, blocks, kThreads, 0, stream, c, arguments...);
}

}  // namespace

int largest_of_kinds(const HeadCodes& c, const void* x, std::uint32_t* largest,
                     CUstream_st* stream) {
  if (!is_valid(c, x, nullptr)) return cudaErrorInvalidValue;
  const cudaError_t status = cudaMemsetAsync(largest, 0, 3 * sizeof *largest, stream);
  if (status != cudaSuccess) return status;
  return launch_heads(largest_kernel, c, stream, static_cast<const __nv_bfloat16*>(x), largest);
}

int largest_of_parts(const std::uint32_t* largest, int parts, std::uint32_t* all,
                     CUstream_st* stream) {
  if (parts <= 0) return cudaErrorInvalidValue;
  return launch(parts_kernel, dim3(1), kWarp, 0, stream, largest, parts, all);
}

int quantize_heads(const HeadCodes& c, const void* x, std::uint8_t* codes, CUstream_st* stream) {
  if (!is_valid(c, x, codes)) return cudaErrorInvalidValue;
  const cudaError_t status = fp8_code(codes_kernel);
  if (status != cudaSuccess) return status;
  return launch_heads(codes_kernel, c, stream, static_cast<const __nv_bfloat16*>(x), codes);
}

int restore_heads(const HeadCodes& c, const std::uint8_t* codes, void* x, CUstream_st* stream) {
  if (!is_valid(c, codes, x)) return cudaErrorInvalidValue;
  return launch_heads(restore_kernel, c, stream, codes, static_cast<__nv_bfloat16*>(x));
}

int head_scales(const std::uint32_t* largest, float* scales, CUstream_st* stream) {
  return launch(scales_kernel, dim3(1), kWarp, 0, stream, largest, scales);
}

}  // namespace vfm::kernels
