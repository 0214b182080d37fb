// Constants, checks and helpers shared by the kernels of attention, besides attention.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "../attention.h"
#include "launch.cuh"
#include "vector.cuh"

namespace vfm::kernels {

inline constexpr float kAttentionLog2E = 1.4426950408889634f;
/// The maximum before any score. It is finite, so that a row without keys does not become NaN.
inline constexpr float kAttentionNoScore = -1e30f;

/// In attention_simple.cu. The arguments are not checked here.
int attention_simple_forward(const Attention& call, cudaStream_t stream);
int attention_simple_backward(const Attention& call, cudaStream_t stream);

/// Whether the tensor core kernels support this call; host code.
inline bool attention_on_tensor_cores(const Attention& c) {
  return c.type == Type::bf16 && !c.bias && (c.head_dim == 64 || c.head_dim == 128) &&
         c.q_stride % 8 == 0 && c.kv_stride % 8 == 0 &&
         aligned_to_16(c.q, c.k, c.v, c.out, c.dout, c.dq, c.dk, c.dv);
}

inline bool attention_is_valid(const Attention& c) {
  return c.heads > 0 && c.heads <= 65535 && c.key_heads > 0 && c.heads % c.key_heads == 0 &&
         c.head_dim > 0 && c.head_dim <= 256 && c.scale > 0 && c.queries >= 0 &&
         c.queries <= 0x7fffffff && c.query_item_count >= 0 && c.key_item_count >= 0 &&
         c.query_item_count <= 0x3ffffff && c.key_item_count <= 0x3ffffff;
}

/// Returns the number of keys of the sample that query `row` sees: the first ones.
__device__ __forceinline__ int seen_keys(const Attention& c, const AttentionItem& item, int row) {
  const int causal = row + 1 + item.keys - item.queries;
  return c.causal && causal < item.keys ? causal : item.keys;
}

/// Returns the first query that sees key `row`, if there is one.
__device__ __forceinline__ int first_seeing(const Attention& c, const AttentionItem& item,
                                            int row) {
  const int shift = item.keys - item.queries;
  return c.causal && row > shift ? row - shift : 0;
}

/// Whether every row of every array may be read four elements at a time; host code.
inline bool attention_in_quads(const Attention& c) {
  const std::uintptr_t size = c.type == Type::bf16 ? 8 : 16;
  const auto aligned = [size](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % size == 0;
  };
  if (c.wide && reinterpret_cast<std::uintptr_t>(c.out) % 16) return false;
  return c.head_dim % 4 == 0 && c.q_stride % 4 == 0 && c.kv_stride % 4 == 0 && aligned(c.q) &&
         aligned(c.k) && aligned(c.v) && aligned(c.out) && aligned(c.dout) && aligned(c.dq) &&
         aligned(c.dk) && aligned(c.dv);
}

/// Loads four elements, of which `left` exist; the others are zero. kQuads: all or none exist.
template <bool kQuads, class T>
__device__ __forceinline__ float4 load_part(const T* p, int left) {
  if constexpr (kQuads)
    return left > 0 ? load4(p) : float4{0, 0, 0, 0};
  else
    return {left > 0 ? static_cast<float>(p[0]) : 0.f, left > 1 ? static_cast<float>(p[1]) : 0.f,
            left > 2 ? static_cast<float>(p[2]) : 0.f, left > 3 ? static_cast<float>(p[3]) : 0.f};
}

template <bool kQuads, class T>
__device__ __forceinline__ void store_part(T* p, float4 v, int left) {
  if constexpr (kQuads) {
    if (left > 0) store4(p, v);
  } else {
    if (left > 0) p[0] = static_cast<T>(v.x);
    if (left > 1) p[1] = static_cast<T>(v.y);
    if (left > 2) p[2] = static_cast<T>(v.z);
    if (left > 3) p[3] = static_cast<T>(v.w);
  }
}

__device__ __forceinline__ float dot4(float4 a, float4 b) {
  return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
}

}  // namespace vfm::kernels
