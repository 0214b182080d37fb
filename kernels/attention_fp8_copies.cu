// The E4M3 copies of queries, keys and values, and the magnitudes that their scales follow from.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "attention_fp8.h"
#include "common/attention_fp8.cuh"
#include "common/launch.cuh"
#include "common/pack.cuh"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 128;

// The rows of an item: the first one of the pack, and how many.
struct Rows {
  std::int64_t first;
  int count;
};
template <bool kQueries>
__device__ __forceinline__ Rows rows_of(const AttentionItem& item) {
  if constexpr (kQueries)
    return {std::int64_t{item.query_start} + item.first,
            min(item.queries - item.first, kAttentionQueryBlock)};
  else
    return {std::int64_t{item.key_start} + item.first,
            min(item.keys - item.first, kAttentionKeyBlock)};
}

// A head of the rows: `slot` is where its magnitude lies among the sample's.
struct Head {
  const __nv_bfloat16* from;
  std::int64_t stride;
  int slot;
};
// Heads of queries; or of keys, then of values.
template <bool kQueries>
__device__ __forceinline__ Head head_of(const Attention& c, int index) {
  if constexpr (kQueries) {
    return {static_cast<const __nv_bfloat16*>(c.q) + index * c.head_dim, c.q_stride, index};
  } else {
    const bool value = index >= c.key_heads;
    const auto* from = static_cast<const __nv_bfloat16*>(value ? c.v : c.k);
    return {from + (value ? index - c.key_heads : index) * c.head_dim, c.kv_stride,
            c.heads + index};
  }
}
__device__ __forceinline__ unsigned* magnitude_of(const AttentionFp8& a, const AttentionItem& item,
                                                  int slot) {
  return fp8_room(a).largest + std::int64_t{item.sample} * (a.call.heads + 2 * a.call.key_heads) +
         slot;
}

// A maximum has no order, so atomics make no chance here.
template <bool kQueries, int kDim>
__global__ void __launch_bounds__(kThreads) magnitudes_kernel(const AttentionFp8 a) {
  constexpr int kGroups = kDim / 8;
  const Attention& c = a.call;
  const AttentionItem item = (kQueries ? c.query_items : c.key_items)[blockIdx.x];
  const Rows rows = rows_of<kQueries>(item);
  const Head head = head_of<kQueries>(c, static_cast<int>(blockIdx.y));
  const int thread = static_cast<int>(threadIdx.x);
  unsigned most = 0;
  for (int row = thread / kGroups; row < rows.count; row += kThreads / kGroups) {
    float v[8];
    unpack(*reinterpret_cast<const uint4*>(head.from + (rows.first + row) * head.stride +
                                           thread % kGroups * 8),
           v);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      most = max(most, magnitude_bits(v[i]));
  }
  most = max_of_warp(most);
  if (thread % 32 == 0) atomicMax(magnitude_of(a, item, head.slot), most);
}

// Queries, or keys: as they lie, without the gaps.
template <bool kQueries, int kDim>
__global__ void __launch_bounds__(kThreads) rows_kernel(const AttentionFp8 a) {
  constexpr int kGroups = kDim / 16;
  const Attention& c = a.call;
  const AttentionItem item = (kQueries ? c.query_items : c.key_items)[blockIdx.x];
  const Rows rows = rows_of<kQueries>(item);
  const int index = static_cast<int>(blockIdx.y), heads = static_cast<int>(gridDim.y);
  const Head head = head_of<kQueries>(c, index);
  const float inverse = fp8_scale(*magnitude_of(a, item, head.slot)).inverse;
  const Fp8Room room = fp8_room(a);
  std::uint8_t* to = kQueries ? room.q : room.k;
  const int thread = static_cast<int>(threadIdx.x), column = thread % kGroups * 16;
  for (int row = thread / kGroups; row < rows.count; row += kThreads / kGroups) {
    const auto* from =
        reinterpret_cast<const uint4*>(head.from + (rows.first + row) * head.stride + column);
    float low[8], high[8], v[16];
    unpack(from[0], low);
    unpack(from[1], high);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v[i] = low[i], v[i + 8] = high[i];
    *reinterpret_cast<uint4*>(to + ((rows.first + row) * heads + index) * kDim + column) =
        quantize_16(v, inverse);
  }
}

// Values: turned through shared memory, keys in the order of value_place(), zeros behind the last.
// Behind every eight columns 16 bytes are left out, so that what a warp writes at once, one of each
// eight columns, goes to different banks.
template <int kDim>
__global__ void __launch_bounds__(kThreads) values_kernel(const AttentionFp8 a) {
  constexpr int kGroups = kDim / 8, kPitch = kAttentionKeyBlock;
  __shared__ uint4 words[(kDim * kPitch + kGroups * 16) / 16];  // aligned to 16 bytes
  auto* turned = reinterpret_cast<unsigned char*>(words);
  const Attention& c = a.call;
  const AttentionItem item = c.key_items[blockIdx.x];
  const Rows rows = rows_of<false>(item);
  const int value_head = static_cast<int>(blockIdx.y);
  const Head head = head_of<false>(c, c.key_heads + value_head);
  const float inverse = fp8_scale(*magnitude_of(a, item, head.slot)).inverse;
  const int thread = static_cast<int>(threadIdx.x), column = thread % kGroups * 8;
  for (int row = thread / kGroups; row < kAttentionKeyBlock; row += kThreads / kGroups) {
    float v[8] = {};
    if (row < rows.count)
      unpack(*reinterpret_cast<const uint4*>(head.from + (rows.first + row) * head.stride + column),
             v);
    unsigned char* to =
        turned + column * kPitch + column / 8 * 16 + row / 16 * 16 + value_place(row % 16);
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const unsigned two = pack_e4m3(v[i] * inverse, v[i + 1] * inverse);
      to[i * kPitch] = static_cast<unsigned char>(two);
      to[(i + 1) * kPitch] = static_cast<unsigned char>(two >> 8);
    }
  }
  __syncthreads();
  constexpr int kParts = kAttentionKeyBlock / 16;
  const Fp8Room room = fp8_room(a);
  std::uint8_t* to =
      room.v + std::int64_t{value_head} * kDim * room.columns + first_column(item) + item.first;
  const int part = thread % kParts * 16;
  for (int row = thread / kParts; row < kDim && part < rows.count; row += kThreads / kParts)
    *reinterpret_cast<uint4*>(to + row * room.columns + part) =
        *reinterpret_cast<const uint4*>(turned + row * kPitch + row / 8 * 16 + part);
}

template <int kDim>
int launch_all(const AttentionFp8& a, cudaStream_t stream) {
  const Attention& c = a.call;
  const auto queries = static_cast<unsigned>(c.query_item_count);
  const auto keys = static_cast<unsigned>(c.key_item_count);
  const auto heads = static_cast<unsigned>(c.heads), key_heads = static_cast<unsigned>(c.key_heads);
  const auto run = [&](auto* kernel, dim3 blocks) {
    return launch(kernel, blocks, kThreads, 0, stream, a);
  };
  if (a.largest == nullptr)
    for (const cudaError_t status :
         {run(magnitudes_kernel<true, kDim>, dim3(queries, heads)),
          run(magnitudes_kernel<false, kDim>, dim3(keys, 2 * key_heads))})
      if (status != cudaSuccess) return status;
  for (const cudaError_t status : {run(rows_kernel<true, kDim>, dim3(queries, heads)),
                                   run(rows_kernel<false, kDim>, dim3(keys, key_heads)),
                                   run(values_kernel<kDim>, dim3(keys, key_heads))})
    if (status != cudaSuccess) return status;
  return cudaSuccess;
}

}  // namespace

int attention_fp8_copies(const AttentionFp8& call, cudaStream_t stream) {
  const std::size_t magnitudes =
      sizeof(unsigned) *
      static_cast<std::size_t>(call.samples * (call.call.heads + 2 * call.call.key_heads));
  unsigned* const to = fp8_room(call).largest;
  const cudaError_t status =
      call.largest == nullptr
          ? cudaMemsetAsync(to, 0, magnitudes, stream)
          : cudaMemcpyAsync(to, call.largest, magnitudes, cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return status;
  return call.call.head_dim == 64 ? launch_all<64>(call, stream) : launch_all<128>(call, stream);
}

}  // namespace vfm::kernels
